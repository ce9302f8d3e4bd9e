"""A job that starts NCCL on free hosts and reads what it says: one small collective, one log.

From NCCL 2.31 on it also runs the library's own diagnostics; older ones do not know the variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from commcheck.check import limit
from commcheck.jobs import collective
from commcheck.jobs.collective import collective_job
from commcheck.jobs.job import Answered, Job, Member, Members, Ran, Search, Steps, once
from commcheck.jobs.outcomes import Outcome, Run
from commcheck.jobs.said import error
from commcheck.lazy import dataclass
from commcheck.model import Cause, Kind, Status, Verdict
from commcheck.nccl import causes, causes_diag, causes_errors, causes_plugins
from commcheck.nccl.case import Case
from commcheck.nccl.facts import Job as Facts
from commcheck.nccl.job_logs import JobLog, JobLogs, facts_of
from commcheck.nccl.judge import judge
from commcheck.nccl.site import Site, SiteHost, site_of

HOSTS_MOST: Final = 16
"""Hosts of one run: at INFO a rank says some ten kilobytes."""

ENV: Final[Mapping[str, str]] = {
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,ENV,NET,GRAPH",
    "NCCL_RUN_DIAGNOSTICS": "1",
    "NCCL_RUN_RAS_DIAGNOSTICS": "1",
}

CAUSES: Final = tuple(
    each
    for module in (causes, causes_errors, causes_diag, causes_plugins)
    for each in vars(module).values()
    if isinstance(each, Cause)
)

_SMALL: Final = "enough to use every ring once"


@dataclass(frozen=True, slots=True)
class Limits(collective.Limits):
    """What is run. all_gather uses rings, so that every NIC shows."""

    min_mib: int = limit(64, unit="MiB, first size", source=_SMALL)
    max_mib: int = limit(64, unit="MiB, last size", source=_SMALL)
    iterations: int = limit(1, unit="timed runs of each size", source=_SMALL)


def init_job() -> Job:
    """All free hosts at once, ``HOSTS_MOST`` in a run."""
    return replace(
        collective_job("fleet", ENV),
        least=1,
        steps=_steps,
        read=_read,
        together=lambda _found, _limits: (),
    )


def _steps(members: Sequence[Member], _limits: Limits) -> Steps:
    names = [member.name for member in members]
    runs = tuple(Run(tuple(names[at : at + HOSTS_MOST])) for at in range(0, len(names), HOSTS_MOST))
    return once(runs)


def _read(run: Run, members: Members, _limits: Limits, answered: Answered) -> Ran:
    mine = {host: members[host] for host in run.hosts}
    verdicts = _verdicts(run, mine, answered)
    good = {Status.PASS: True, Status.WARN: True, Status.FAIL: False}.get(verdicts[0].status)
    return Ran(run=run, verdicts=verdicts, outcome=Outcome(run, good, None))


def _verdicts(run: Run, mine: Members, answered: Answered) -> tuple[Verdict, ...]:
    if answered.problem:
        return (error("LaunchFailed", answered.problem),)
    text = "\n".join(f"{each.stdout}\n{each.stderr}" for each in answered.outputs)
    found = judge(Case(_facts(text), _site(mine.values()))).verdicts
    if any(verdict.status is Status.FAIL for verdict in found):
        return found
    if answered.timed_out:
        return (error("RunTimedOut", f"the run on {run} did not end in its time"), *found)
    broken = next((each for each in answered.outputs if each.rc != 0), None)
    if broken is not None:
        why = f"the run on {run} ended with exit code {broken.rc}: {broken.complaint}"
        return (error("LaunchFailed", why), *found)
    return found


def _facts(text: str) -> Facts:
    log = JobLog("the run's output", text, None, truncated=False)
    return facts_of(JobLogs((log,), live=False))


def _site(members: Iterable[Member]) -> Site:
    """What is expected of each host, by every name under which its ranks may log."""
    known: dict[str, SiteHost] = {}
    for member in members:
        # Several may be reached at one address: here each is a machine of its own.
        told = {k: v for k, v in member.host.variables.items() if k != "ansible_host"}
        host = replace(member.host, variables=told)
        found = site_of({member.name: host}, {member.name: member.machine.platform}).hosts
        known |= found
        if member.hostname:
            known[member.hostname] = found[member.name]
    return Site(known)


def of_host(found: Search, host: str) -> tuple[Verdict, ...]:
    """What the run of a host says of it; of what is wrong elsewhere it only took part."""
    mine = found.of(host)
    if not mine:
        reason = f"undecidable: no run with {host} was launched"
        return (Verdict(status=Status.SKIP, kind=Kind.UNDECIDABLE, reason=reason),)
    verdicts = mine[-1].verdicts
    told = tuple(each for each in verdicts if host in each.hosts or not each.hosts)
    if told:
        return tuple(replace(each, hosts=()) for each in told)
    elsewhere = verdicts[0]
    reason = f"its own part is right; {elsewhere.rule} on {', '.join(elsewhere.hosts[:4])}"
    return (Verdict(status=Status.PASS, reason=reason),)

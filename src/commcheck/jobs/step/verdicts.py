"""From what a training step printed to verdicts: by the ladder of traces, on the hosts it is about.

Pure.
"""

from __future__ import annotations

from dataclasses import replace

from commcheck.check import undecidable
from commcheck.command import Output
from commcheck.errors import ParseError
from commcheck.frameworks.mfu import peak_of, utilisation
from commcheck.jobs.job import Answered, Member, Members, Search
from commcheck.jobs.outcomes import Run
from commcheck.jobs.said import error, of_fleet
from commcheck.jobs.step.limits import StepLimits
from commcheck.jobs.step.reading import Ran, StepOutput, facts_of, joined, parse
from commcheck.jobs.step.site import site_of
from commcheck.model import Kind, Status, Verdict
from commcheck.trace.ladder import judge
from commcheck.trace.lanes import pictured
from commcheck.trace.rungs import Known


def judged(
    run: Run, members: Members, limits: StepLimits, answered: Answered
) -> tuple[Verdict, ...]:
    """The verdicts on one run, the one to blame first."""
    if answered.timed_out:
        what = f"the step on {run} did not end within {limits.run_limit_s:.0f} s"
        return (error("RunTimedOut", f"{what} and was ended"),)
    outputs = {host: each[0] for host, each in answered.by_host.items() if each}
    if answered.outputs:
        outputs[run.hosts[0]] = answered.outputs[0]
    try:
        told = {host: parse(outputs[host]) for host in run.hosts if host in outputs}
        # A host that lacks something, before those that waited for it in vain.
        wrong = sorted(
            (host for host in told if not told[host].traces),
            key=lambda host: not told[host].missing,
        )
        if wrong:
            return (_nothing(members[wrong[0]], told[wrong[0]], outputs[wrong[0]]),)
        if answered.problem:
            return (error("LaunchFailed", answered.problem),)
        both = joined(tuple(told.values()))
        if both.ran is None:
            return (_nothing(members[run.hosts[0]], both, outputs[run.hosts[0]]),)
        job, unread = facts_of(both.traces)
    except ParseError as problem:
        return (error("ParseError", problem.reason),)
    ran = both.ran
    what = "step of the site's own training" if ran.is_own else f"{ran.sharding.upper()} step"
    about = f"{what} of {ran.ranks} ranks on {ran.device} ({ran.backend})"
    missing = both.left_out or (len(both.traces) < ran.ranks and not ran.is_own)
    if missing or unread:
        why = "; ".join([*_left_out(both), *unread]) or "they were not sent"
        return (error("TraceMissing", f"{about}: not all traces are there: {why}"),)
    host_of = {f"rank {rank}": host for host in told for rank in told[host].traces}
    found = []
    for each in pictured(job, judge(job, limits, Known())):
        blamed = tuple(host_of[rank] for rank in each.hosts if rank in host_of)
        found.append(_of(each, blamed or run.hosts, about, ran))
    return tuple(found)


def _of(verdict: Verdict, hosts: tuple[str, ...], about: str, ran: Ran) -> Verdict:
    """A verdict of the ladder as one on the hosts that it is about."""
    status, reason = verdict.status, f"{about}: {verdict.reason}"
    if ran.backend == "gloo" and status in (Status.FAIL, Status.WARN):
        # What else runs on the host's cores shows in it as late ranks and slow communication.
        status, reason = Status.WARN, f"{reason}; on CPUs it is no proof against an accelerator"
    step_ms = sum(ran.step_ms) / len(ran.step_ms)
    measured = {
        "step_ms": round(step_ms, 3),
        "ranks": ran.ranks,
        "torch": ran.torch,
        "parameters": ran.parameters,
        **_share(ran, step_ms),
        **verdict.measured,
    }
    return replace(verdict, status=status, reason=reason, measured=measured, hosts=hosts)


def _share(ran: Ran, step_ms: float) -> dict[str, object]:
    """What of the device's peak the step gets, where both are known."""
    peak = peak_of(ran.device)
    if peak is None or ran.flops is None:
        return {}
    return {"mfu": round(utilisation(ran.flops, step_ms / 1e3, peak), 4), "mfu_of": peak.source}


def _left_out(told: StepOutput) -> list[str]:
    return [
        f"that of rank {rank} has {size / (1 << 20):.1f} MiB, more than trace_mib"
        for rank, size in sorted(told.left_out.items())
    ]


def _nothing(member: Member, told: StepOutput, output: Output) -> Verdict:
    """Why there is no trace to judge."""
    site = site_of(member)
    if told.missing:
        return undecidable(
            f"nothing to train with on {member.name}: {told.problem}",
            turn_on="name a Python that has it in the inventory: commcheck_train_python, and "
            "commcheck_train_environment where it is in a container",
        )
    if told.problem:
        return error("LaunchFailed", f"the step on {member.name}: {told.problem}{_last(output)}")
    if told.left_out:
        return error("TraceMissing", f"the step on {member.name}: {'; '.join(_left_out(told))}")
    if output.rc in (126, 127):
        return undecidable(
            f"nothing to train with on {member.name}: "
            f"{' '.join((*site.environment.value, site.python.value))} cannot be started there",
            turn_on="name one that has torch in the inventory: commcheck_train_python, "
            "commcheck_train_environment",
        )
    return error("LaunchFailed", f"the step on {member.name} brought no trace{_last(output)}")


def _last(output: Output) -> str:
    """The last line that says what went wrong; torchrun's own summary is none."""
    lines = [line.strip() for line in output.stderr.splitlines() if "Error" in line]
    own = [line for line in lines if "ChildFailedError" not in line and "error_file" not in line]
    return f": {own[-1][:300]}" if own else ""


def whole(found: Search) -> tuple[Verdict, ...]:
    """What the training over all hosts says."""
    return found.ran[-1].verdicts if found.ran else ()


def of_fleet_step(found: Search, host: str) -> tuple[Verdict, ...]:
    """A host's part in the training of all: only a late rank is somebody's own."""
    mine = tuple(each for each in whole(found) if each.hosts == (host,))
    return mine or of_fleet(found, host)


def of_step(found: Search, host: str) -> tuple[Verdict, ...]:
    """What the step inside a host says."""
    mine = found.of(host)
    if mine:
        return mine[-1].verdicts
    reason = f"undecidable: no step on {host} was launched"
    return (Verdict(status=Status.SKIP, kind=Kind.UNDECIDABLE, reason=reason),)

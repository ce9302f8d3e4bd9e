"""Searches made by hand: what a job would have brought, for the checks that judge it."""

from __future__ import annotations

from collections.abc import Sequence

from commcheck.check import AnyCheck, failed, job_of, passed
from commcheck.counters import Growth
from commcheck.jobs.job import Job, Ran, Search
from commcheck.jobs.locate import Culprit, Located, Open, locate
from commcheck.jobs.outcomes import Outcome, Run
from commcheck.model import Cause, Verdict

HOSTS = ("gpu-01", "gpu-02", "gpu-03", "gpu-04")


def launched_by(check: AnyCheck) -> Job:
    """The job of a check that loads."""
    job = job_of(check)
    assert isinstance(job, Job)
    return job


def ran(
    *hosts: str, good: bool | None = True, cause: Cause | None = None, alone: bool = False
) -> Ran:
    """A run of some hosts; with a cause it failed for that."""
    run = Run(hosts, alone=alone)
    text = f"all_gather with 16 ranks on {', '.join(hosts)}"
    verdict = passed(f"{text}: good") if cause is None else failed(cause, f"{text}: slow")
    return Ran(run=run, verdicts=(verdict,), outcome=Outcome(run, good, 188.0 if good else 20.0))


def broken(*hosts: str, verdict: Verdict) -> Ran:
    """A run that proved nothing."""
    run = Run(hosts)
    return Ran(run=run, verdicts=(verdict,), outcome=Outcome(run, None))


def search(
    runs: Sequence[Ran],
    *,
    hosts: tuple[str, ...] = HOSTS,
    growth: dict[str, Growth] | None = None,
    located: Located | None = None,
) -> Search:
    """What those runs find."""
    found = located or locate(hosts, [each.outcome for each in runs])
    return Search(hosts=hosts, ran=tuple(runs), located=found, growth=growth or {})


def at_fault(what: str, *hosts: str, rail: int | None = None, good: Sequence[str] = ()) -> Located:
    """A search that ended with one object at fault."""
    culprit = Culprit(what, hosts, rail, "leaf-1" if what == "leaf" else "", "two runs show it")  # type: ignore[arg-type] # a word of Object
    return Located(
        culprits=(culprit,),
        good=frozenset(good),
        open=(),
        unseen=(),
        paths=3,
        all_paths=6,
        runs=4,
    )


def undecided(*hosts: str) -> Located:
    """A search that a further run would decide."""
    left = Open(hosts, "it failed once", Run((hosts[0], "gpu-04")))
    return Located(
        culprits=(), good=frozenset(), open=(left,), unseen=(), paths=1, all_paths=6, runs=1
    )

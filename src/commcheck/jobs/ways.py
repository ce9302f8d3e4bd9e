"""Runs between two hosts that try one way after another: a verdict for each rail, or each chip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from commcheck.command import Output
from commcheck.jobs.job import Answered, Ran
from commcheck.jobs.outcomes import Outcome, Run
from commcheck.jobs.said import error
from commcheck.model import Status, Verdict

W = TypeVar("W")


def read(
    run: Run,
    tool: str,
    answered: Answered,
    ways: Callable[[], Sequence[W]],
    judge: Callable[[W, Output], Verdict],
) -> tuple[Verdict, ...]:
    """A verdict a way, in the order in which ``tool`` was told of them."""
    if answered.problem:
        return (error("LaunchFailed", answered.problem),)
    if answered.timed_out:
        return (error("RunTimedOut", f"{tool} on {run} did not end, and was ended"),)
    asked = ways()
    verdicts = tuple(judge(way, said) for way, said in zip(asked, answered.outputs, strict=False))
    if len(answered.outputs) == len(asked) > 0:
        return verdicts
    # A way that nothing was heard of must not pass with the others.
    reason = f"{len(answered.outputs)} of {len(asked)} answers of {tool} on {run}"
    return (*verdicts, error("CommandNotRun", reason))


def ran_of(run: Run, verdicts: Sequence[Verdict], busbw_gbytes: float | None = None) -> Ran:
    """The run, its worst verdict first. It is good only where every way was read and none fails."""
    statuses = {verdict.status for verdict in verdicts}
    good = True if statuses and statuses <= {Status.PASS, Status.WARN} else None
    if Status.FAIL in statuses:
        good = False
    worst = sorted(verdicts, key=lambda v: (v.status is not Status.FAIL, v.status is Status.PASS))
    named = tuple(replace(verdict, hosts=run.hosts) for verdict in worst)
    return Ran(run=run, verdicts=named, outcome=Outcome(run, good, busbw_gbytes))

"""What earlier sessions left of hosts, so that no host is asked twice for what is known."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Final

from commcheck import subjects
from commcheck.collect.base import SUBJECTS, Frame, State
from commcheck.collect.replay import ReplayVisitor
from commcheck.errors import (
    ConnectionLost,
    HostDeadline,
    HostError,
    RunFolderError,
    Unjudgeable,
    Unreachable,
)
from commcheck.lazy import dataclass
from commcheck.model import Result
from commcheck.plan import HostPlan, requests
from commcheck.prepare import Prepared
from commcheck.report.cleaning import decode
from commcheck.report.record import Failure, Plan, Record

FramesOf = Callable[[str], Iterable[Frame]]
"""The stored frames of a host, by its name, as they arrived."""

_ERRORS: Final = {
    each.__name__: each for each in (HostError, Unreachable, ConnectionLost, HostDeadline)
}
_ANSWERS: Final = frozenset({State.DONE, State.TIMED_OUT, State.SUDO_REFUSED})


@dataclass(frozen=True, slots=True)
class Stored:
    """Hosts that need not be asked again, and the answers of those that were asked in part.

    ``ended``: hosts whose session ended, with the error it ended with. ``goes_on``: the frames lie
    in the folder of the run itself, and what a host answered in part counts there. ``results``:
    by host and check, what that folder holds of them. ``notes`` are in it, too.
    """

    frames_of: FramesOf
    ended: Mapping[str, HostError | None]
    goes_on: bool = False
    results: Mapping[tuple[str, str], Result] = field(default_factory=dict)
    notes: frozenset[str] = frozenset()

    @property
    def visitor(self) -> ReplayVisitor:
        """Answers for the hosts of ``ended``."""
        return ReplayVisitor(self.frames_of, self.ended.get)

    def readable(self, host: str) -> Iterator[Frame]:
        """The stored frames of a host, up to a line that somebody damaged."""
        with contextlib.suppress(RunFolderError):
            yield from self.frames_of(host)

    def answers(self, host: str, boot_id: str) -> dict[str, Frame]:
        """What a host answered before its session was cut off, by key, since the same boot.

        Without a boot id nothing counts: counters may have begun anew.
        """
        found: dict[str, Frame] = {}
        if not self.goes_on or not boot_id:
            return found
        same_boot = False
        for frame in self.readable(host):
            if frame.key == SUBJECTS:
                same_boot = f"boot_id {boot_id}" in decode(frame.stdout).split("\n")
                if not same_boot:
                    found.clear()
            elif same_boot and frame.state in _ANSWERS:
                found[frame.key] = frame
        return found


def of_run(record: Record, plan: Iterable[HostPlan], frames_of: FramesOf) -> Stored:
    """For a run that goes on in its own folder."""
    ended: dict[str, HostError | None] = {}
    for each in plan:
        name = each.host.name
        if name in record.reached:
            ended[name] = ended_with(record, name)
        elif _is_answered(each, frames_of(name), _ANSWERS):
            ended[name] = None  # killed between the last answer and the word that it was the last
    results = {(result.host, result.check): result for result in record.results}
    return Stored(frames_of, ended, True, results, frozenset(record.notes))


def of_passed(passed: Iterable[str], plan: Iterable[HostPlan], frames_of: FramesOf) -> Stored:
    """For a run that asks again what did not pass: the others answer from what is stored.

    A host of which today's checks want more than was recorded is asked.
    """
    names = frozenset(passed)
    return Stored(
        frames_of,
        {
            each.host.name: None
            for each in plan
            if each.host.name in names
            and _is_answered(each, frames_of(each.host.name), frozenset(State))
        },
    )


def of_all(records: Mapping[str, Record], frames_of: FramesOf) -> Stored:
    """For judging again without asking anybody: ``records`` by host."""
    return Stored(frames_of, {host: ended_with(each, host) for host, each in records.items()})


def ended_with(record: Record, host: str) -> HostError | None:
    """The error that a host's session ended with, as it was raised then."""
    failure = record.failures.get(host)
    if failure is None:
        return None
    kind = _ERRORS.get(failure.error, HostError)
    return kind(failure.code, failure.reason, failure.remedy)


def failure_of(error: HostError | None) -> Failure | None:
    """The error as a record keeps it."""
    if error is None:
        return None
    return Failure(type(error).__name__, error.code, error.reason, error.remedy)


def _is_answered(plan: HostPlan, frames: Iterable[Frame], states: frozenset[State]) -> bool:
    """True where the frames hold an answer to all that would be asked of the host now."""
    found: dict[str, Frame] = {}
    try:
        for frame in frames:
            if frame.key == SUBJECTS:
                found.clear()  # of one session, so of one boot
            found[frame.key] = frame
        if SUBJECTS not in found:
            return False
        machine = subjects.machine(plan.host, decode(found[SUBJECTS].stdout))
    except (Unjudgeable, RunFolderError):
        return False
    return all(
        request.key in found and found[request.key].state in states
        for request in requests(plan.host, machine, plan.asked)
    )


# --- is it the same run? ------------------------------------------------------------------------


def differences(record: Record, prepared: Prepared, plan: Plan, limit: str) -> Iterator[str]:
    """In which way a stored run asked something else than what is asked now; a line each."""
    info, old = record.info, record.plan
    for name, was, now in (
        ("playbook", info.playbook, prepared.playbook.name),
        ("inventory digest", info.inventory_digest, prepared.inventory.digest),
        ("limit", info.limit or "none", limit or "none"),
    ):
        if was != now:
            yield f"{name}: {was} then, {now} now"
    if old == Plan():
        return  # killed before it was written: nothing was asked
    yield from plan_differences(old, plan)


def plan_differences(
    old: Plan, new: Plan, *, hosts: bool = True, words: tuple[str, str] = ("then", "now")
) -> Iterator[str]:
    """Hosts and checks that only one of two plans has, and checks whose files differ.

    ``hosts``: whether both must have the same ones. ``words`` name the two.
    """
    before = {check.id: check for check in old.checks}
    after = {check.id: check for check in new.checks}
    for what, was, now in (
        ("hosts", old.hosts if hosts else (), new.hosts if hosts else ()),
        ("checks", tuple(before), tuple(after)),
    ):
        for when, more, less in ((words[0], was, now), (words[1], now, was)):
            known = frozenset(less)
            only = [each for each in more if each not in known]
            if only:
                rest = f" and {len(only) - 8:,} more" if len(only) > 8 else ""
                yield f"{what} only {when}: {', '.join(only[:8])}{rest}"
    for check_id in before.keys() & after.keys():
        if before[check_id].digest != after[check_id].digest:
            yield f"check {check_id}: not the same file in both"
    if set(old.hosts) == set(new.hosts) and before.keys() == after.keys():
        asked = [host for host in new.hosts if old.cases[host] != new.cases[host]]
        if asked:
            yield f"other checks are asked of {', '.join(asked[:8])}"

"""What a rule answers: found something, right, none of its business, or cannot tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Literal

from commcheck.lazy import dataclass
from commcheck.model import Cause, Figure, Status, Verdict
from commcheck.nccl.case import Case
from commcheck.report.counts import many
from commcheck.report.ranges import fold_hosts

State = Literal["wrong", "right", "other", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One thing that is wrong, before it becomes a verdict.

    ``evidence`` are places ``file:line``; ``places`` fill the remedies' commands.

    """

    rule: str
    cause: Cause
    reason: str
    status: Status = Status.FAIL
    hosts: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    measured: Mapping[str, object] = field(default_factory=dict)
    figures: tuple[Figure, ...] = ()
    places: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ruling:
    """A rule's answer; ``why`` says what it rests on, ``turn_on`` what would make it tell.

    ``doubt``: something is odd, and whether it is wrong cannot be told: that is no healthy job.
    """

    state: State
    found: tuple[Found, ...] = ()
    why: str = ""
    turn_on: str = ""
    doubt: bool = False


def right(why: str = "") -> Ruling:
    """Looked at, and nothing is wrong."""
    return Ruling("right", why=why)


def other(why: str) -> Ruling:
    """Does not apply to this job."""
    return Ruling("other", why=why)


def unknown(why: str, turn_on: str, *, doubt: bool = False) -> Ruling:
    """The input cannot tell."""
    return Ruling("unknown", why=why, turn_on=turn_on, doubt=doubt)


def wrong(*found: Found) -> Ruling:
    """What was found; nothing found is right."""
    return Ruling("wrong", tuple(found)) if found else right()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found, and each rule's answer. ``jobs``: of each job, where there are several."""

    verdicts: tuple[Verdict, ...]
    rulings: Mapping[str, Ruling]
    jobs: tuple[Judgement, ...] = ()

    @property
    def judged(self) -> tuple[str, ...]:
        """Rules that could tell."""
        return tuple(r for r, ruling in self.rulings.items() if ruling.state in ("wrong", "right"))

    @property
    def not_judged(self) -> Mapping[str, str]:
        """Rules that could not, with why and what to turn on."""
        return {
            rule: f"{ruling.why}; {ruling.turn_on}"
            for rule, ruling in self.rulings.items()
            if ruling.state == "unknown"
        }

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is right and worth knowing all the same."""
        return tuple(
            f"{rule}: {ruling.why}"
            for rule, ruling in self.rulings.items()
            if ruling.state == "right" and ruling.why
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its number, what it asks, and how it answers."""

    id: str
    asks: str
    judge: Callable[[Case], Ruling]


NAME_MACHINES = "give the inventory with -i, with commcheck_log_names for pods and containers"
INFO_EVERYWHERE = "run with NCCL_DEBUG=INFO on every rank"
SUBSYSTEMS = "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET,GRAPH"


def rule_notes(judged: Iterable[str], not_judged: Mapping[str, str]) -> list[str]:
    """Which rules spoke, and why the others did not with what to turn on; ids are folded."""
    by_reason: dict[str, list[str]] = {}
    for rule, why in not_judged.items():
        by_reason.setdefault(why, []).append(rule)
    return [
        *(f"not judged: {fold_hosts(rules)}: {why}" for why, rules in by_reason.items()),
        f"rules judged: {fold_hosts(judged) or 'none'}",
    ]


def rules_told(judgement: Judgement) -> str:
    """How many rules could tell, and how many could not."""
    judged = many(len(judgement.judged), "rule")
    return f"{judged} judged, {len(judgement.not_judged)} could not be"

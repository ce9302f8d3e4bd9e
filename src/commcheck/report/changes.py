"""What is different between two runs, as data: folded by check, cause and status.

``diff`` finds it; the reports show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any, Final, Literal, get_args

from commcheck.lazy import dataclass

Kind = Literal[
    "newly-failing",
    "newly-unknown",
    "newly-warned",
    "fixed",
    "no-longer-judged",
    "now-waived",
    "still-failing",
    "still-unknown",
]
"""In the order in which a person needs them: what is as it was comes last."""

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

FAIL: Final = "fail"
WAIVED: Final = "waived"
UNKNOWN: Final = frozenset({"error", "undecidable", "busy"})
TROUBLE: Final = frozenset({FAIL, *UNKNOWN})
"""Presentation words of what did not pass."""

Json = dict[str, Any]
Case = tuple[str, str]
"""A check's id and a host's name."""


@dataclass(frozen=True, slots=True)
class Change:
    """Subjects whose verdict of the same checks went the same way.

    ``was`` and ``now`` are presentation words, "" where there was no verdict; ``before`` and
    ``after`` the reasons of the first subject. ``since``: the run in which a fail was first seen.
    """

    kind: Kind
    checks: tuple[str, ...]
    subjects: tuple[str, ...]  # "host" or "host/rail"
    was: str
    now: str
    before: str
    after: str
    cause: str = ""
    since: str = ""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of its subjects, in their order."""
        return tuple(dict.fromkeys(host_of(subject) for subject in self.subjects))


@dataclass(frozen=True, slots=True)
class Moved:
    """A measured value that is different under the same status. The values are of ``example``."""

    check: str
    name: str  # with its unit
    subjects: tuple[str, ...]
    example: str
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class LimitChange:
    """A threshold or expectation that is not what it was: verdicts may differ for that alone."""

    check: str
    name: str
    unit: str
    hosts: tuple[str, ...]
    before: object
    after: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """From a baseline to a run. ``compared`` verdicts were judged by both.

    ``notes`` say what makes the two hard to compare: another playbook, hosts that are missing.
    """

    baseline: str
    started: str
    compared: int
    judged_before: int
    judged_now: int
    notes: tuple[str, ...] = ()
    limits: tuple[LimitChange, ...] = ()
    changes: tuple[Change, ...] = ()
    moved: tuple[Moved, ...] = ()

    def of(self, kind: Kind) -> tuple[Change, ...]:
        """The changes of one kind."""
        return tuple(each for each in self.changes if each.kind == kind)

    def cases(self, kind: Kind) -> int:
        """On how many pairs of check and host something went that way."""
        return len(cases_of(self.of(kind)))

    @property
    def exit_code(self) -> int:
        """1 where something newly fails, 3 where only something is newly unknown, else 0."""
        return 1 if self.of("newly-failing") else 3 if self.of("newly-unknown") else 0


def host_of(subject: str) -> str:
    """The host of ``host/rail``. A group's name ``@group`` stands for itself."""
    return subject if subject.startswith("@") else subject.partition("/")[0]


def cases_of(changes: Iterable[Change]) -> dict[Case, None]:
    """Pairs of check and host, each once, in order."""
    return {(check, host): None for each in changes for check in each.checks for host in each.hosts}


# --- plain data ---------------------------------------------------------------------------------


def to_json(changes: Changes) -> Json:
    """Plain JSON; ``from_json`` reads it back."""
    counts = {kind: changes.cases(kind) for kind in KINDS}
    return {**asdict(changes), "counts": counts}


def from_json(data: Mapping[str, Any]) -> Changes:
    """What ``to_json`` made. Raises ``KeyError``, ``TypeError`` or ``ValueError`` for others."""
    changes = tuple(_read(Change, each) for each in data["changes"])
    for each in changes:
        if each.kind not in KINDS:
            raise ValueError(f"no kind of change: {each.kind!r}")
    return Changes(
        baseline=str(data["baseline"]),
        started=str(data["started"]),
        compared=int(data["compared"]),
        judged_before=int(data["judged_before"]),
        judged_now=int(data["judged_now"]),
        notes=tuple(data["notes"]),
        limits=tuple(_read(LimitChange, each) for each in data["limits"]),
        changes=changes,
        moved=tuple(_read(Moved, each) for each in data["moved"]),
    )


def _read(kind: type[Any], data: Mapping[str, Any]) -> Any:
    lists = ("subjects", "hosts", "checks")
    values = {each.name: data[each.name] for each in fields(kind)}
    return kind(**{k: tuple(v) if k in lists else v for k, v in values.items()})

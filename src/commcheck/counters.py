"""What counters that only ever count up say: differences, resets, and counters that are full.

A total says nothing of when. Judged is what was added during the visit and, where commcheck was
here before on the same boot, since then. A counter that went backwards was reset or wrapped: what
it shows now was counted after that, so it grew by at least that much. A counter that stands at its
highest value (InfiniBand's are as small as 4 bits) cannot show growth. One that is not there is
not zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Final

from commcheck.check import Span, Watched
from commcheck.lazy import dataclass

WINDOW_SOURCE: Final = "0: only what the other commands of the visit take; a playbook sets more"


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters by the driver's own names. Empty: the driver shows none."""

    values: Mapping[str, int]

    def get(self, name: str) -> int | None:
        """The value; None where there is no such counter."""
        return self.values.get(name)


@dataclass(frozen=True, slots=True)
class Growth:
    """What was added to some counters in some seconds; counters without growth are left out."""

    seconds: float
    added: Mapping[str, int]
    reset: tuple[str, ...] = ()  # went backwards: ``added`` is the least that it can be

    @property
    def total(self) -> int:
        """The sum over the counters."""
        return sum(self.added.values())

    @property
    def per_hour(self) -> float:
        """The sum as a rate; 0 for a window without length."""
        return self.total * 3600 / self.seconds if self.seconds > 0 else 0.0

    def only(self, names: Iterable[str]) -> Growth:
        """Of these counters alone."""
        wanted = set(names)
        return Growth(
            self.seconds,
            {name: count for name, count in self.added.items() if name in wanted},
            tuple(name for name in self.reset if name in wanted),
        )

    def __str__(self) -> str:
        parts = ", ".join(
            f"{name} +{count}{' at least (reset)' if name in self.reset else ''}"
            for name, count in self.added.items()
        )
        return f"{parts or 'no growth'} in {length(self.seconds)}"


def growth(span: Span[Counters], names: Iterable[str]) -> Growth:
    """What the counters that both readings have grew by."""
    added, reset = {}, []
    for name in names:
        first, last = span.first.get(name), span.last.get(name)
        if first is None or last is None:
            continue
        if last < first:
            reset.append(name)
        count = last if last < first else last - first
        if count:
            added[name] = count
    return Growth(span.seconds, added, tuple(reset))


def length(seconds: float) -> str:
    """A length of time as a person says it."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.3g} h" if seconds < 172_800 else f"{seconds / 86_400:.3g} days"


@dataclass(frozen=True, slots=True)
class Errors:
    """Counters that should not grow, on one rail.

    ``there``: the names that the driver has. ``totals``: what they show now, without zeros.
    ``full``: stand at their highest value.
    """

    there: tuple[str, ...]
    visit: Growth
    since: Growth | None
    totals: Mapping[str, int] = field(default_factory=dict)
    full: tuple[str, ...] = ()

    @property
    def never(self) -> bool:
        """True where nothing was ever counted: better than any window."""
        return not self.totals

    def only(self, names: Iterable[str]) -> Errors:
        """Of these counters alone."""
        wanted = set(names)
        return Errors(
            there=tuple(name for name in self.there if name in wanted),
            visit=self.visit.only(wanted),
            since=None if self.since is None else self.since.only(wanted),
            totals={name: count for name, count in self.totals.items() if name in wanted},
            full=tuple(name for name in self.full if name in wanted),
        )

    @property
    def longest(self) -> Growth:
        """The growth over the longest window there is."""
        return self.visit if self.since is None else self.since

    @property
    def grown(self) -> Growth:
        """The longest window in which something was added, else the longest there is.

        A counter that began anew since the earlier run and has passed what it was then shows less
        growth since than in the visit, or none.
        """
        return self.visit if self.visit.added and not self.longest.added else self.longest

    @property
    def told(self) -> str:
        """The totals as a remark, or ""."""
        parts = ", ".join(f"{name} {count}" for name, count in self.totals.items())
        return f"; before that: {parts}" if parts else ""

    @property
    def measured(self) -> dict[str, object]:
        """The numbers for the report."""
        numbers: dict[str, object] = {
            "window_s": round(self.visit.seconds, 1),
            "added": dict(self.visit.added),
        }
        if self.since is not None:
            numbers["since_earlier_run_s"] = round(self.since.seconds)
            numbers["added_since_earlier_run"] = dict(self.since.added)
        if self.totals:
            numbers["totals"] = dict(self.totals)
        return numbers


def errors(
    watched: Watched[Counters],
    names: Iterable[str],
    *,
    tops: Mapping[str, int] | None = None,
) -> Errors:
    """What the counters say. ``tops``: the highest value of those that stop there."""
    last = watched.visit.last
    there = tuple(name for name in names if last.get(name) is not None)
    totals = {name: value for name in there if (value := last.get(name))}
    tops = tops or {}
    return Errors(
        there=there,
        visit=growth(watched.visit, there),
        since=None if watched.since is None else growth(watched.since, there),
        totals=totals,
        full=tuple(name for name, value in totals.items() if value == tops.get(name)),
    )

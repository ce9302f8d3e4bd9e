"""The fleet as a table that fits a screen: hosts with equal verdicts are one row, checks with equal
verdicts one column.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from commcheck.diagnose import Diagnosis, presentation
from commcheck.lazy import dataclass
from commcheck.model import Kind, Layer, Status, Words
from commcheck.report.interface import counted
from commcheck.report.record import Record
from commcheck.report.words import LOUD, MARKS, NOT_ASKED, Mark

_OWN_COLUMN: Final = frozenset({"fail", "warn", Kind.WAIVED})
"""Words that keep a check from sharing a column."""


@dataclass(frozen=True, slots=True)
class Column:
    """One check, or several whose verdicts are equal on every host."""

    checks: tuple[str, ...]
    label: Words
    layers: tuple[Layer, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """Hosts whose verdicts are equal, in the order of the columns."""

    hosts: tuple[str, ...]
    cells: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Fleet:
    """The folded table. ``more_patterns`` and ``more_hosts`` were left out."""

    columns: tuple[Column, ...]
    patterns: tuple[Pattern, ...]
    more_patterns: int
    more_hosts: int


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Every host's presentation words in the order of the checks; equal hosts together."""

    checks: tuple[str, ...]
    patterns: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]  # words, hosts; worst first


def verdicts(record: Record) -> Verdicts:
    """Worst first; hosts on which nothing is to be seen come last."""
    checks = _checks(record)
    by_pattern: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for host, words in _words_by_host(record).items():
        by_pattern[tuple(words.get(check, NOT_ASKED) for check in checks)].append(host)
    patterns = ((pattern, tuple(hosts)) for pattern, hosts in by_pattern.items())
    return Verdicts(checks, tuple(sorted(patterns, key=lambda each: _order(*each))))


def fleet(whole: Verdicts, *, max_patterns: int, max_cells: int) -> Fleet:
    """The table of at most so many rows and cells. The last row stays, whatever is left out."""
    checks, patterns = whole.checks, whole.patterns
    columns = _columns(checks, [pattern for pattern, _ in patterns])
    room = max(2, min(max_patterns, max_cells // max(1, len(columns))))
    kept = patterns if len(patterns) <= room else (*patterns[: room - 1], patterns[-1])
    left_out = patterns[room - 1 : -1] if len(patterns) > room else ()
    place = {check: index for index, check in enumerate(checks)}
    return Fleet(
        columns=columns,
        patterns=tuple(
            Pattern(
                hosts,
                tuple(MARKS[pattern[place[column.checks[0]]]] for column in columns),
            )
            for pattern, hosts in kept
        ),
        more_patterns=len(left_out),
        more_hosts=sum(len(hosts) for _, hosts in left_out),
    )


def first_failing(
    record: Record, diagnosis: Diagnosis
) -> tuple[tuple[Layer, tuple[str, ...]], ...]:
    """Hosts by the lowest layer on which they fail, in inventory order."""
    seen: set[str] = set()
    found = []
    for layer in Layer:
        failing = {
            host
            for group in diagnosis.groups
            if group.layer is layer and group.status is Status.FAIL
            for host in group.hosts
        } - seen
        seen |= failing
        if failing:
            planned = [host for host in record.plan.hosts if host in failing]
            found.append((layer, (*planned, *sorted(failing.difference(planned)))))
    return tuple(found)


def _checks(record: Record) -> tuple[str, ...]:
    """Bottom-up, in playbook order within a layer; what was judged unplanned comes after."""
    ids = dict.fromkeys(check.id for check in record.plan.checks)
    ids.update(dict.fromkeys(result.check for result in record.sorted))
    return tuple(sorted(ids, key=lambda check: Layer.of(check).height))


def _words_by_host(record: Record) -> Mapping[str, Mapping[str, str]]:
    words: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for result in record.sorted:
        words[result.host][result.check] = presentation(result.worst)
    return words


def _order(pattern: Sequence[str], hosts: Sequence[str]) -> tuple[int, int, int]:
    """Fails before errors before warnings; of one kind the lowest first, then the many."""
    for rank, word in enumerate(LOUD):
        if word in pattern:
            return rank, pattern.index(word), -len(hosts)
    # Groups and hosts with a waiver stand above those of which there is nothing to say.
    quiet = all(word in ("pass", Kind.NOT_APPLICABLE) for word in pattern)
    return len(LOUD) + quiet, 0, -len(hosts)


def _columns(checks: Sequence[str], patterns: Sequence[tuple[str, ...]]) -> tuple[Column, ...]:
    """Bottom-up: what there is to look at; then what nobody need tell apart, all passes last."""
    alike: dict[tuple[object, ...], list[str]] = {}
    ranks: dict[tuple[object, ...], int] = {}
    for index, check in enumerate(checks):
        vector = tuple(pattern[index] for pattern in patterns)
        own = check if _OWN_COLUMN.intersection(vector) else ""
        alike.setdefault((own, *vector), []).append(check)
        loud = not set(LOUD).isdisjoint(vector)
        ranks[(own, *vector)] = 0 if loud else 2 if set(vector) == {"pass"} else 1
    ordered = sorted(alike, key=lambda key: ranks[key])
    has_loud = bool(ordered) and ranks[ordered[0]] == 0
    return tuple(_column(alike[key], "more " if has_loud and ranks[key] else "") for key in ordered)


def _column(ids: Sequence[str], more: str) -> Column:
    layers = tuple(dict.fromkeys(Layer.of(check) for check in ids))
    name = ids[0].partition(".")[2]
    label = Words(name, name) if len(ids) == 1 else counted(len(ids), f"{more}check")
    return Column(tuple(ids), label, layers)

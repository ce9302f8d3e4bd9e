"""Counters of NICs over the last day, as monitoring kept them. Pure.

A counter that went backwards began anew (reboot, driver): what it shows then was counted since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import pairwise

from commcheck.lazy import dataclass
from commcheck.metrics.reading import Line, Metrics


@dataclass(frozen=True, slots=True)
class Port:
    """What one port counted on top, by counter: in the whole window and in its last hour.

    ``ago_s``: since the newest growth. ``goes_on``: grew all through the last hour.
    ``covered_s``: from its first sample to its last. ``silent_s``: since the last.
    """

    name: str
    there: frozenset[str]
    added: Mapping[str, int] = field(default_factory=dict)
    recent: Mapping[str, int] = field(default_factory=dict)
    ago_s: Mapping[str, float] = field(default_factory=dict)
    goes_on: frozenset[str] = frozenset()
    covered_s: float = 0.0
    silent_s: float = 0.0


RECENT_S = 3600.0


def ports(metrics: Metrics, names: Iterable[str], label: str) -> dict[str, Port]:
    """The ports of a host by name. ``label``: the one that holds it, ``device`` or ``id``."""
    lines: dict[str, list[tuple[str, Line]]] = {}
    for name in names:
        for line in metrics.of(name):
            if line.seen:
                lines.setdefault(_port(line, label), []).append((name, line))
    return {port: _grown(port, mine, metrics) for port, mine in lines.items()}


def _port(line: Line, label: str) -> str:
    name, number = line.labels.get(label, "?"), line.labels.get("port", "1")
    if label == "id":
        return f"NPU {name}"
    return name if number == "1" else f"{name}/{number}"


def _grown(port: str, lines: Sequence[tuple[str, Line]], metrics: Metrics) -> Port:
    added: dict[str, int] = {}
    recent: dict[str, int] = {}
    ago: dict[str, float] = {}
    covered = 0.0
    steps: dict[str, int] = {}
    by_name: dict[str, list[Line]] = {}
    for name, line in lines:
        by_name.setdefault(name, []).append(line)
    for name, told in by_name.items():
        seen = _one_counter(told)
        covered = max(covered, (seen[-1][0] - seen[0][0]) * metrics.step_s)
        for (_, before), (place, now) in pairwise(seen):
            more = int(now - before if now >= before else now)
            if more <= 0:
                continue
            age = (metrics.points - 1 - place) * metrics.step_s
            added[name] = added.get(name, 0) + more
            ago[name] = min(age, ago.get(name, age))
            if age < RECENT_S:
                recent[name] = recent.get(name, 0) + more
                steps[name] = steps.get(name, 0) + 1
    all_of_it = max(1, int(RECENT_S / metrics.step_s))
    goes_on = frozenset(name for name, count in steps.items() if count >= all_of_it)
    silent = metrics.silent_s(line for _, line in lines)
    return Port(port, frozenset(by_name), added, recent, ago, goes_on, covered, silent)


def _one_counter(lines: Sequence[Line]) -> list[tuple[int, float]]:
    """Where and what a counter was seen at, of all series that tell it.

    They are many where two jobs or two replicas scrape one exporter, and one after the other where
    its pod was replaced. The highest counts: a scrape that is a little older is no step back.
    """
    at = enumerate(zip(*(line.values for line in lines), strict=True))
    told = ((place, [v for v in values if v is not None]) for place, values in at)
    return [(place, max(values)) for place, values in told if values]

"""What monitoring knows of hosts that could not be reached: a dead host, or only a dead way to it.

No verdict rests on it: that a host's exporters answer says nothing of what a check would have seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.counters import length
from commcheck.metrics.api import Series
from commcheck.metrics.fleet import Fleet, Target, Told, names_of
from commcheck.model import Host
from commcheck.report.counts import many
from commcheck.report.ranges import fold_hosts

MOST: Final = 8
"""Lines: after a power cut every host says the same, and the page of a run is not a dashboard."""

SILENT: Final = frozenset(
    {"tcp-timeout", "tcp-refused", "tcp-unreachable", "tcp-failed", "banner-timeout"}
)
"""How far one came with a machine that may be dead: whose sshd talks is not (reachable.py)."""

_FRESH_S: Final = 120.0
"""Two instants of a minute: the newest scrape may not be in yet."""


def told_of(fleet: Fleet, hosts: Iterable[Host]) -> Iterator[str]:
    """A line for all hosts of which monitoring says the same, in their order; none where nothing.

    ``hosts``: those that could not be reached.
    """
    groups: dict[str, list[str]] = {}
    for host in hosts:
        if words := _words(fleet, host):
            groups.setdefault(words, []).append(host.name)
    for words, names in list(groups.items())[:MOST]:
        yield f"not reached, but known to monitoring: {fold_hosts(names)}: {words}"
    if left := sum(map(len, list(groups.values())[MOST:])):
        yield f"not reached, but known to monitoring: {many(left, 'more host')}"


def _words(fleet: Fleet, host: Host) -> str:
    target = Target.of(host)
    shares = [
        (told, told.index.of(names_of(host)))
        for (asked, _), told in fleet.told.items()
        if asked == target and told.grid is not None and told.problem is None
    ]
    silent = [_silent_s(told, each) for told, found in shares for s in found.values() for each in s]
    silent_s = min(silent, default=math.inf)
    if math.isinf(silent_s):
        return ""
    words = (
        "exporters answer from there: sshd or the way to it is broken, not the machine"
        if silent_s < _FRESH_S
        else f"exporters there have been silent for {length(silent_s)}: down, or cut off"
    )
    codes = {code for _, found in shares for each in found.get("xid", ()) if (code := _last(each))}
    named = ", ".join(f"{code:g}" for code in sorted(codes))
    return f"{words}; last XID of a GPU there: {named}" if named else words


def _silent_s(told: Told, series: Series) -> float:
    """Since the instant of the newest sample; each instant looks back over five minutes."""
    there = [place for place, value in enumerate(series.samples) if not math.isnan(value)]
    if not there or told.grid is None:
        return math.inf
    return (told.grid.points - 1 - there[-1]) * told.grid.step_s


def _last(series: Series) -> float:
    """The newest sample, 0 where there is none."""
    return next((value for value in reversed(series.samples) if not math.isnan(value)), 0.0)

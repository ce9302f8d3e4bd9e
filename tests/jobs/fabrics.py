"""Simulated fabrics for the locator: what is bad is known, and a run shows it as a real one would.

A run is as good as its worst host, rail and path; of a group all paths count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from commcheck.jobs.outcomes import ALL_RAILS, Outcome, Run


def names(count: int) -> tuple[str, ...]:
    return tuple(f"gpu-{at:03}" for at in range(count))


def leaves(hosts: Sequence[str], size: int) -> dict[str, str]:
    return {host: f"leaf-{at // size}" for at, host in enumerate(hosts)}


@dataclass(frozen=True)
class Simulated:
    """``uplinks``: leaves that nothing crosses; ``switches``: leaves where nothing passes at all.

    ``crowded``: pairs that fail only beside other runs.
    """

    hosts: tuple[str, ...]
    leaf_of: dict[str, str] = field(default_factory=dict)
    bad_hosts: frozenset[str] = frozenset()
    bad_rails: frozenset[tuple[str, int]] = frozenset()
    bad_paths: frozenset[frozenset[str]] = frozenset()
    planes: frozenset[int] = frozenset()
    uplinks: frozenset[str] = frozenset()
    switches: frozenset[str] = frozenset()
    crowded: frozenset[frozenset[str]] = frozenset()
    all_bad: bool = False

    def good(self, run: Run) -> bool:
        if self.all_bad or self.bad_hosts & set(run.hosts):
            return False
        rails = range(64) if run.rail in (None, ALL_RAILS) else (run.rail,)
        if any(host in run.hosts and rail in rails for host, rail in self.bad_rails):
            return False
        if any(rail in rails for rail in self.planes):
            return False
        if {self.leaf_of.get(host) for host in run.hosts} & self.switches:
            return False
        return all(self._path(frozenset(pair), run) for pair in combinations(run.hosts, 2))

    def _path(self, pair: frozenset[str], run: Run) -> bool:
        ends = {self.leaf_of.get(host) for host in pair}
        if len(ends) == 2 and ends & self.uplinks:
            return False
        return pair not in self.bad_paths and (run.alone or pair not in self.crowded)

    @property
    def measure(self) -> Callable[[Sequence[Run]], list[Outcome]]:
        def run_all(round_: Sequence[Run]) -> list[Outcome]:
            used = [host for run in round_ for host in run.hosts]
            assert len(used) == len(set(used)), "a host is in two runs of one round"
            assert all(run.alone for run in round_) == (len(round_) == 1)
            return [
                Outcome(run, good, 360.0 if good else 90.0)
                for run in round_
                for good in (self.good(run),)
            ]

        return run_all

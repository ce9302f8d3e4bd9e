"""What runs of hosts showed, sorted out: who passed with whom, who failed, and what ran alone.

A run of two hosts speaks of their path as well; of a larger group only a pass says something of
each host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

from commcheck.lazy import dataclass

ALL_RAILS: Final = -1
"""A run split into one group per rail (NCCL_TESTS_SPLIT="MOD g" -a 3): its slowest rail counts."""


@dataclass(frozen=True, slots=True)
class Run:
    """Hosts that run together. ``rail``: None for all rails together, a rail's number, or
    ``ALL_RAILS``. ``alone``: nothing else runs in its round."""

    hosts: tuple[str, ...]
    rail: int | None = None
    alone: bool = False

    @property
    def pair(self) -> frozenset[str] | None:
        """Its two hosts; None for a larger group."""
        return frozenset(self.hosts) if len(self.hosts) == 2 else None

    def __str__(self) -> str:
        where = " + ".join(self.hosts) if len(self.hosts) < 5 else f"{len(self.hosts)} hosts"
        if self.rail is None:
            return where
        return f"{where}, {'each rail' if self.rail == ALL_RAILS else f'rail {self.rail}'}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run showed. ``good`` is None where it proved nothing (crashed, another's job)."""

    run: Run
    good: bool | None
    busbw_gbytes: float | None = None


@dataclass(slots=True)
class Facts:
    """The outcomes of one rail (or of all together), sorted out."""

    hosts: tuple[str, ...]
    leaf_of: Mapping[str, str]
    good: set[str] = field(default_factory=set)
    passed: set[frozenset[str]] = field(default_factory=set)
    failed: dict[frozenset[str], bool] = field(default_factory=dict)  # pair: failed alone
    against: dict[str, list[str]] = field(default_factory=dict)  # host: with whom it failed
    parallel_only: set[frozenset[str]] = field(default_factory=set)
    tried: set[str] = field(default_factory=set)
    groups_failed: list[tuple[str, ...]] = field(default_factory=list)
    proven: frozenset[str] = frozenset()  # bad with all rails together: one partner is enough

    def bad_partners(self, host: str) -> list[str]:
        """Good hosts with which it failed."""
        return [other for other in self.against.get(host, ()) if other in self.good]

    def alone(self, host: str) -> bool:
        """True where one of its failures with a good host was repeated with nothing beside it."""
        return any(self.failed[frozenset({host, other})] for other in self.bad_partners(host))

    def leaf(self, host: str) -> str:
        """Its leaf switch, "" where that is not known."""
        return self.leaf_of.get(host, "")

    def leaf_mates(self, host: str) -> list[str]:
        """The other hosts of its leaf switch."""
        leaf = self.leaf(host)
        return [h for h in self.hosts if leaf and h != host and self.leaf(h) == leaf]


def facts_of(
    hosts: Sequence[str], outcomes: Iterable[Outcome], leaf_of: Mapping[str, str]
) -> Facts:
    """The outcomes of one rail, or of all together; a pair's last run alone outweighs others."""
    facts = Facts(tuple(hosts), leaf_of)
    latest_alone: dict[frozenset[str], bool] = {}
    latest: dict[frozenset[str], bool] = {}
    for outcome in outcomes:
        if outcome.good is None:
            continue
        run = outcome.run
        facts.tried.update(run.hosts)
        if outcome.good:
            facts.good.update(run.hosts)
        if run.pair is None:
            if not outcome.good:
                facts.groups_failed.append(run.hosts)
            continue
        latest[run.pair] = latest.get(run.pair, True) and outcome.good
        if run.alone:
            latest_alone[run.pair] = outcome.good
    for pair, good in latest.items():
        if latest_alone.get(pair, good):
            facts.passed.add(pair)
            if not good:
                facts.parallel_only.add(pair)
        else:
            facts.failed[pair] = pair in latest_alone
            for host in pair:
                facts.against.setdefault(host, []).append(next(iter(pair - {host})))
    return facts

"""What hosts tell of one job's environments, put together: the ranks that are set otherwise. Pure.

No host can tell from its own ranks. The same job is where ranks meet at one address and port, their
numbers differ, and they are no more than the job has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from commcheck.check import Whole
from commcheck.lazy import dataclass, regex
from commcheck.model import Status, Verdict
from commcheck.nccl.environment.judge import verdict_of
from commcheck.nccl.environment.model import Case, Environment
from commcheck.nccl.environment.rules_job import DIFFERENCES
from commcheck.together import sharing

_OWN: Final = regex(r"localhost:|127\.|\[?::1|\?:|.*:\?$")
"""Meeting points that every host may have for itself, or that are not whole."""

_RANK: Final = regex(r"(rank \d+) \(pid \d+\)")
_WEIGHT: Final = {Status.FAIL: 2, Status.WARN: 1}


@dataclass(frozen=True, slots=True)
class Part:
    """One host's environments of jobs that have ranks elsewhere, and its own verdicts."""

    environments: tuple[Environment, ...]
    own: tuple[Verdict, ...]

    @property
    def jobs(self) -> frozenset[str]:
        """The jobs that it has ranks of."""
        return frozenset(each.job for each in self.environments)


def part_of(environments: Iterable[Environment], own: tuple[Verdict, ...]) -> Part | None:
    """The host's part; None where none of its jobs has ranks elsewhere, as far as is known."""
    spanning = tuple(
        each
        for each in environments
        if each.job and not _OWN.match(each.job) and each.spans_hosts is True
    )
    return Part(spanning, own) if spanning else None


def judge_parts(parts: Mapping[str, Part]) -> Iterable[Whole]:
    """For hosts that share jobs: what differs, beside what each of them found by itself."""
    for hosts in sharing({host: part.jobs for host, part in parts.items()}):
        found = list(_found({host: parts[host] for host in hosts}))
        told = {}
        for host in hosts:
            own = parts[host].own
            if mine := [
                each for each in found if host in _blamed(each, parts) and _adds(each, own)
            ]:
                told[host] = (*mine, *(each for each in own if each.status is not Status.PASS))
        yield Whole(tuple(hosts), told)


def _found(parts: Mapping[str, Part]) -> Iterator[Verdict]:
    for job in sorted({job for part in parts.values() for job in part.jobs}):
        ranks = [
            replace(each, who=tuple(f"{host} {_rank(who)}" for who in each.who))
            for host, part in sorted(parts.items())  # not as they happened to be looked at
            for each in part.environments
            if each.job == job
        ]
        if _is_one(ranks):
            for rule in DIFFERENCES:
                yield from map(verdict_of, rule.judge(Case(tuple(ranks))).found)


def _rank(who: str) -> str:
    found = _RANK.fullmatch(who)
    return found[1] if found else who


def _is_one(ranks: list[Environment]) -> bool:
    """True for the ranks of one job on several hosts, and not of two that meet at one name."""
    names = [who.partition(" ")[2] for each in ranks for who in each.who]
    sizes = {each.get("WORLD_SIZE") for each in ranks}
    return (
        len({each.host for each in ranks}) > 1
        and all(name.startswith("rank ") for name in names)
        and len(set(names)) == len(names)
        and len(sizes) == 1
    )


def _blamed(found: Verdict, parts: Mapping[str, Part]) -> tuple[str, ...]:
    """The hosts at fault: of two halves, those that hold the value against their own host."""
    suspects = [host for host in found.hosts if _weight(found, parts[host].own)]
    return tuple(suspects) or found.hosts


def _adds(found: Verdict, own: Iterable[Verdict]) -> bool:
    """False where the host found as much of the variable by itself."""
    return _WEIGHT[found.status] > _weight(found, own)


def _weight(found: Verdict, own: Iterable[Verdict]) -> int:
    name = re.compile(rf"\b{re.escape(str(found.measured['variable']))}\b")
    return max((_WEIGHT.get(v.status, 0) for v in own if name.search(v.reason)), default=0)

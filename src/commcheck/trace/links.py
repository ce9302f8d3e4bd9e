"""Whether the links of a rank of NPUs carry less than those of its peers, as HCCL counted itself.

HCCL's own times hold no waiting for a late rank, so that ranks that move alike can be compared:
what msprof-analyze calls a slow link. Stages of a pipeline do not move alike, and are not.
"""

from __future__ import annotations

from statistics import median
from typing import Final

from commcheck.trace import causes
from commcheck.trace.facts import JobFacts, Link, RankFacts
from commcheck.trace.limits import Limits
from commcheck.trace.rungs import Rung, pct

_WAYS: Final = ("RDMA", "HCCS", "PCIE", "SIO")
"""SDMA is the sum of all but the first."""
_RANKS_LEAST: Final = 4
"""With fewer no median tells which of them is the slow one."""
_ALIKE: Final = 0.5
"""So much of the median, or more, a rank has to move to be compared with it."""


def link_rung(job: JobFacts, limits: Limits) -> list[Rung]:
    """For each kind of way the ranks that are slower on it than their peers."""
    if any(rank.pipes for rank in job.ranks):
        return []
    return [rung for way in _WAYS for rung in _of_way(job, way, limits)]


def _of_way(job: JobFacts, way: str, limits: Limits) -> list[Rung]:
    told = [
        (rank, link)
        for rank in job.ranks
        if rank.hccl
        for link in rank.hccl.links
        if link.name == way
    ]
    if len(told) < _RANKS_LEAST:
        return []
    usual_bytes = median(link.size_bytes for _, link in told)
    alike = [(rank, link) for rank, link in told if link.size_bytes >= _ALIKE * usual_bytes]
    usual = median(link.gbytes for _, link in alike)
    slow = [(rank, link) for rank, link in alike if link.gbytes < limits.link_share * usual]
    # Where half of them are slow, nothing tells which half is.
    if not slow or 2 * len(slow) >= len(alike):
        return []
    return [_rung(slow, way, usual, limits)]


def _rung(slow: list[tuple[RankFacts, Link]], way: str, usual: float, limits: Limits) -> Rung:
    slow.sort(key=lambda each: each[1].gbytes)
    rank, link = slow[0]
    more = f", and {len(slow) - 1} more ranks are slow" if len(slow) > 1 else ""
    return Rung(
        causes.SLOW_LINK,
        False,
        f"{rank.name} moves {link.gbytes:.1f} GB/s over {way}, its peers {usual:.1f} in the median "
        f"(limit {pct(limits.link_share)}){more}",
        "likely",
        ("both ends of a slow link are slow, and one of them is at fault",),
        {"gbytes": round(link.gbytes, 2), "peers_gbytes": round(usual, 2)},
        tuple(dict.fromkeys(n for each, _ in slow for n in (each.name, each.host) if n)),
    )

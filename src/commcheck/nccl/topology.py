"""Rings rebuilt per communicator: their order, and how often they cross between hosts."""

from __future__ import annotations

from collections.abc import Mapping

from commcheck.lazy import dataclass
from commcheck.model import Figure, Words
from commcheck.nccl.case import Case
from commcheck.nccl.facts import Comm

DRAWN_MOST = 512
"""Ranks drawn of one ring: a picture with more shows nothing."""


@dataclass(frozen=True, slots=True)
class Ring:
    """One channel's ring. ``crossings`` counts host changes with the way back to the start."""

    channel: int
    order: tuple[int, ...]
    crossings: int
    minimum: int


def rings(case: Case, comm: Comm) -> tuple[Ring, ...]:
    """The rings that are wholly known, with the hosts of all their ranks; none is guessed."""
    domains = case.domains(comm)
    if domains is None:
        return ()
    minimum = domains if domains > 1 else 0
    found = []
    for channel, order in sorted(_orders(comm).items()):
        hosts = [case.rank_host(comm, rank) for rank in order]
        if None in hosts:
            continue
        steps = zip(hosts, [*hosts[1:], hosts[0]], strict=True)
        crossings = 0 if domains == 1 else sum(here != there for here, there in steps)
        found.append(Ring(channel, order, crossings, minimum))
    return tuple(found)


def _orders(comm: Comm) -> dict[int, tuple[int, ...]]:
    """Whole rings by channel: GRAPH lines first, then rank 0's listing, then connection lines."""
    found = _from_steps(comm.ring_next, comm.nranks)
    found |= {
        channel: order for channel, order in comm.listings.items() if len(order) == comm.nranks
    }
    return found | _from_steps(comm.graph_next, comm.nranks)


def _from_steps(steps: Mapping[int, int], nranks: int) -> dict[int, tuple[int, ...]]:
    found = {}
    for channel in {key >> 24 for key in steps}:
        order = [0]
        while len(order) < nranks:
            step = steps.get(channel << 24 | order[-1])
            if step is None or step == 0:
                break
            order.append(step)
        closed = steps.get(channel << 24 | order[-1]) == 0
        if closed and len(order) == nranks and len(set(order)) == nranks:
            found[channel] = tuple(order)
    return found


def figure(case: Case, comm: Comm, ring: Ring | None) -> Figure:
    """A ring to draw; without one the ranks as far as they arrived, and those that did not."""
    order = ring.order if ring else tuple(sorted(comm.members))
    missing = [rank for rank in range(comm.nranks) if rank not in comm.members]
    domains = case.domains(comm) or 0
    return Figure(
        form="ring",
        title=Words(
            f"Ring of channel {ring.channel}" if ring else "Ranks that arrived",
            f"通道 {ring.channel} 的环" if ring else "已到达的 rank",
        ),
        data={
            "order": [
                {"rank": rank, "host": case.rank_host(comm, rank) or "?"}
                for rank in order[:DRAWN_MOST]
            ],
            "crossings": ring.crossings if ring else 0,
            "minimum": ring.minimum if ring else (domains if domains > 1 else 0),
            "missing": missing[:DRAWN_MOST],
        },
    )

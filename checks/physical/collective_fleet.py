"""A collective over all free hosts at once reaches what the network should carry.

Why: Pairs do not fill the spine. Oversubscription, hashing of flows onto one uplink and congestion
show only when all send at the same time, as a training job does.
Reads: one ``all_gather_perf`` over all hosts that passed below. It fills the fabric and hurts jobs
on other hosts: ``--allow load``, and a window in which that is agreed.
By hand: ``mpirun -H ...:8 all_gather_perf -b 1G -e 4G -f 2 -g 1`` over all hosts.
Mend: it names no host by itself: run physical.collective-pairs with ``plan: bisect``, then look at
uplinks and ECMP with the network team.
Healthy though odd: above some hundred hosts a few percent less than between two is usual; declare
``fleet`` below ``commcheck_expected_busbw`` from a run that you trust.
"""

from __future__ import annotations

from commcheck.check import Check, launches
from commcheck.jobs.causes import SIGNATURES
from commcheck.jobs.collective import Limits, collective_job
from commcheck.jobs.explained import FLEET as FLEET_EXPLAINED
from commcheck.jobs.job import Search
from commcheck.jobs.said import of_fleet
from commcheck.jobs.site import Site
from commcheck.jobs.titles import TITLES
from commcheck.lazy import dataclass
from commcheck.model import Machine, Verdict


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that was launched, and what it brought."""

    search: Search = launches(collective_job("fleet"))


def judge(seen: Seen, machine: Machine, _site: Site, _limits: Limits) -> tuple[Verdict, ...]:
    """What the runs say of one host."""
    return of_fleet(seen.search, machine.name)


CHECK = Check(
    id="physical.collective-fleet",
    title=TITLES["physical.collective-fleet"],
    subject=Machine,
    seen=Seen,
    want=Site,
    limits=Limits,
    judge=judge,
    needs=("physical.collective-node",),
    causes=SIGNATURES,
    platforms=frozenset({"gpu-roce", "gpu-ib", "ascend"}),
    effects=frozenset({"load"}),
    explained_by=FLEET_EXPLAINED,
)

"""Two NICs write to each other over RDMA at the rate of their line, without GPUs and without MPI.

Why: It tests one rail at a time between two hosts: what NCCL and MPI add is left out, so a slow
result is the NIC, its slot, the cable or the switch.
Reads: ``ib_write_bw`` between pairs of free hosts, all rails one after another; a pair that fails
is tried with other partners, then rail by rail. Loss counters are read before and after. It loads
the links for a second each: ``--allow load``.
By hand: ``ib_write_bw -d mlx5_3 -F --report_gbits -s 8388608 -n 5000`` on one host, the same with
the other's name on the other; 392 Gb/s of 400 with an MTU of 4096.
Mend: a steady 200 to 220 Gb/s is a PCIe slot of Gen4 x16 or Gen5 x8; anything unsteady is loss: PFC
on the NIC and on the whole path.
Healthy though odd: 98 % of the line is all that RoCE's headers leave at an MTU of 4096, 93 % at
1024. Memory of the host is used, so GPUDirect is not tested.
"""

from __future__ import annotations

from commcheck.check import Check, launches
from commcheck.jobs.causes import LATENCY, RDMA_FALLS, RDMA_PCIE, RDMA_SLOW
from commcheck.jobs.causes_places import PLACES
from commcheck.jobs.explained import WIRE
from commcheck.jobs.job import Search
from commcheck.jobs.said import of_host
from commcheck.jobs.site import Site
from commcheck.jobs.titles import TITLES
from commcheck.jobs.writes import Limits, write_job
from commcheck.lazy import dataclass
from commcheck.model import Machine, Verdict


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that was launched, and what it brought."""

    search: Search = launches(write_job())


def judge(seen: Seen, machine: Machine, _site: Site, _limits: Limits) -> tuple[Verdict, ...]:
    """What the runs say of one host."""
    return of_host(seen.search, machine.name)


CHECK = Check(
    id="physical.rdma-pairs",
    title=TITLES["physical.rdma-pairs"],
    subject=Machine,
    seen=Seen,
    want=Site,
    limits=Limits,
    judge=judge,
    needs=("physical.rdma-port-active",),
    causes=(RDMA_SLOW, RDMA_FALLS, RDMA_PCIE, LATENCY, *PLACES),
    platforms=frozenset({"gpu-roce", "gpu-ib"}),
    effects=frozenset({"load"}),
    explained_by=WIRE,
)

"""NCCL starts on all free hosts, over the network and the paths that the hardware was bought for.

Why: Before a job of hours is started, a run of seconds shows what it would get: which network NCCL
takes and over which NICs, GPU Direct or a detour through host memory, rings that zigzag, a rank
that never comes. Bandwidth is not measured: ``physical.collective-pairs`` and its kin do.
Reads: one ``all_gather_perf`` of 64 MiB over all free hosts, 16 in a run, with ``NCCL_DEBUG=INFO
NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET,GRAPH``: its log is judged as ``library.log`` judges one.
NCCL 2.31 and newer also run their own diagnostics (NCCL_RUN_DIAGNOSTICS=1), whose report is judged
with it. It loads the hosts for some ten seconds: ``--allow load``.
By hand: ``NCCL_DEBUG=INFO mpirun -H gpu-01:8,gpu-02:8 -np 16 all_gather_perf -b 64M -e 64M -n 1``.
Mend: the first cause only; the finding says which check one layer below to look at.
Healthy though odd: all that ``library.log`` lists. NCCL reports its own diagnostics as right where
all hosts are alike, also alike slow.
"""

from __future__ import annotations

from commcheck.check import Check, launches
from commcheck.jobs.job import Search
from commcheck.jobs.nccl_init import CAUSES, Limits, init_job, of_host
from commcheck.jobs.site import Site
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Machine, Verdict, Words
from commcheck.nccl.explained import EXPLAINED


@dataclass(frozen=True, slots=True)
class Seen:
    """Every run that was launched, and what NCCL said in it."""

    search: Search = launches(init_job())


def judge(seen: Seen, machine: Machine, _site: Site, _limits: Limits) -> tuple[Verdict, ...]:
    """What the runs say of one host."""
    return of_host(seen.search, machine.name)


CHECK = Check(
    id="library.nccl-init",
    title=Words("NCCL starts as it should", "NCCL 初始化试运行"),
    subject=Machine,
    seen=Seen,
    want=Site,
    limits=Limits,
    judge=judge,
    causes=CAUSES,
    platforms=GPUS,
    effects=frozenset({"load"}),
    explained_by=EXPLAINED,
)

"""A collective inside each host is as fast as its accelerators' links allow.

Why: A GPU that lost an NVLink, an NVSwitch fabric that is half up, or a slot at half width slows
every job that touches the host, and no cable to another host is to blame.
Reads: ``all_reduce_perf -g 8`` on every free host at once (``all_reduce_test`` on Ascend), nothing
crosses the network. It loads the accelerators for some ten seconds: ``--allow load``.
By hand: ``all_reduce_perf -b 256M -e 8G -f 2 -g 8 -w 5 -n 20``; on eight H100 about 470 GB/s of
busbw at 8 GiB, without NVLS (four GPUs) about 363.
Mend: the signature in the reason says where to look: ``nvidia-smi nvlink -s``, the fabric manager,
``nvidia-smi topo -m``. The check of that name one layer below usually failed, too.
Healthy though odd: another model than the ones with a published reference is undecidable until
``node`` below ``commcheck_expected_busbw`` says what a good host of yours shows. A host on which a
job runs is skipped, with the process and its owner.
"""

from __future__ import annotations

from commcheck.check import Check, launches
from commcheck.jobs.causes import SIGNATURES
from commcheck.jobs.collective import NodeLimits, collective_job
from commcheck.jobs.explained import INSIDE
from commcheck.jobs.job import Search
from commcheck.jobs.said import of_node
from commcheck.jobs.site import Site
from commcheck.jobs.titles import TITLES
from commcheck.lazy import dataclass
from commcheck.model import Machine, Verdict


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that was launched, and what it brought."""

    search: Search = launches(collective_job("node"))


def judge(seen: Seen, machine: Machine, _site: Site, _limits: NodeLimits) -> tuple[Verdict, ...]:
    """What the runs say of one host."""
    return of_node(seen.search, machine.name)


CHECK = Check(
    id="physical.collective-node",
    title=TITLES["physical.collective-node"],
    subject=Machine,
    seen=Seen,
    want=Site,
    limits=NodeLimits,
    judge=judge,
    needs=("physical.gpu-driver",),
    causes=SIGNATURES,
    platforms=frozenset({"gpu-roce", "gpu-ib", "ascend"}),
    effects=frozenset({"load"}),
    explained_by=INSIDE,
)

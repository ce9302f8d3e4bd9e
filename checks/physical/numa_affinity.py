"""The system knows which NUMA node each GPU belongs to.

Why: Launchers and NCCL put a process, its memory and its network thread beside its GPU by what the
BIOS tells. Where it tells nothing, they land on the far socket: copies cross it, and the host is
slower than its peers by some percent, differently at each start.
Reads: ``nvidia-smi topo -m`` (CPU and NUMA affinity), ``/sys/devices/system/node/online``. One
verdict for each host.
By hand: ``nvidia-smi topo -m``, the last columns; ``cat /sys/bus/pci/devices/PCI/numa_node`` (-1 is
not told); ``numactl -H``.
Mend: in the BIOS switch on ACPI SLIT/SRAT tables, or NUMA nodes per socket (NPS), as on the peers;
until then bind by hand (``numactl``, ``--cpu-bind``).
Healthy though odd: a host with one node has no far side. A guest has the nodes that its host gives
it: there it is not judged. GPUs may all belong to few of many nodes (NPS4, sub-NUMA clusters).
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, not_applicable, passed, reads, undecidable, warned
from commcheck.formats.numa_nodes import NUMA_NODES, numbers
from commcheck.formats.nvidia_affinity import NVIDIA_AFFINITY, UNTOLD, GpuPlace
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """Where the driver sees each GPU, and the nodes there are."""

    places: tuple[GpuPlace, ...] = reads(NVIDIA_AFFINITY)
    nodes: frozenset[int] = reads(NUMA_NODES)


BIOS = Remedy(
    command="numactl -H",
    effect=Words(
        "Shows the nodes and their distances. Compare BIOS settings (ACPI SRAT/SLIT, NPS, sub-NUMA "
        "clusters) with a peer that tells.",
        "显示节点及距离。与正常的同组主机对比 BIOS 设置（ACPI SRAT/SLIT、NPS、子 NUMA）。",
    ),
    precondition=Words(
        "Reading is free; a change in the BIOS needs a drained host and a reboot.",
        "读取无影响；修改 BIOS 需主机已排空并重启。",
    ),
)

NOT_TOLD = Cause(
    slug="gpu-numa-unknown",
    title=Words("GPU's NUMA node is not known", "GPU 的 NUMA 节点未知"),
    meaning=Words(
        "The host has several NUMA nodes and does not say to which these GPUs belong: processes "
        "cannot be put beside them.",
        "主机有多个 NUMA 节点，但未说明这些 GPU 属于哪个节点：进程无法就近放置。",
    ),
    remedies=(BIOS,),
)


def judge(seen: Seen, machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """A node for each GPU; one that lists them all says nothing."""
    if len(seen.nodes) < 2:
        return not_applicable("one NUMA node: no GPU has a far side")
    if machine.in_vm:
        return not_applicable("a guest has the NUMA nodes that its host gives it")
    if any(place.numa is None for place in seen.places):
        return undecidable(
            "this driver does not tell the NUMA nodes of its GPUs",
            turn_on="look at /sys/bus/pci/devices/*/numa_node",
        )
    untold = [place for place in seen.places if not _is_told(place, seen.nodes)]
    measured = {"numa_node": {place.gpu: place.numa for place in seen.places}}
    if untold:
        names = ", ".join(place.gpu for place in untold)
        reason = f"{len(seen.nodes)} NUMA nodes, and none is told for {names}"
        return warned(NOT_TOLD, reason, measured=measured)
    return passed(
        f"the node of {len(seen.places)} GPUs is known, of {len(seen.nodes)}", measured=measured
    )


def _is_told(place: GpuPlace, nodes: frozenset[int]) -> bool:
    """A list of all nodes is what a system says that knows nothing."""
    return place.numa not in (None, UNTOLD) and numbers(place.numa) < nodes


CHECK = Check(
    id="physical.numa-affinity",
    title=Words("NUMA node of each GPU is known", "GPU 的 NUMA 归属已知"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    needs=("physical.gpu-driver",),
    causes=(NOT_TOLD,),
    platforms=GPUS,
)

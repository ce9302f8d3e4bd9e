"""Every GPU has a training NIC below the same PCIe switch.

Why: GPUDirect RDMA runs at full speed where GPU and NIC meet in a PCIe switch (PIX, PXB). Across
the CPU's host bridge (PHB, NODE) or its socket link (SYS) it is slower and disturbs others.
Reads: ``nvidia-smi topo -m``. One verdict for each host.
By hand: ``nvidia-smi topo -m``: in each GPU's row one NIC at PIX or PXB.
Mend: a card in the wrong slot has to move; a NIC that is gone comes back with its repair. Where
virtualisation or ACS hides the switches, give NCCL the real topology (``NCCL_TOPO_FILE``).
Healthy though odd: one NIC for two GPUs is fine. Where a host has fewer, one or two for eight GPUs,
not each can have one beside it: it is told only where none has. Grace boards (GH200, GB200) hang
NICs on the CPU: NODE is the best there is. Guests have a flat bus. Many 8-NIC A800 and H800 servers
are built with NODE: it is a warning where no GPU at all is near a NIC, and a fail only where some
are and others are not. Hosts without a NIC column (EFA) are undecided.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import (
    Check,
    Nothing,
    Unread,
    failed,
    limit,
    not_applicable,
    passed,
    reads,
    tries,
    undecidable,
    warned,
)
from commcheck.formats.nvidia_smi_list import NVIDIA_SMI_LIST, GpuList
from commcheck.formats.nvidia_topo import NVIDIA_TOPO, NvidiaTopo
from commcheck.lazy import dataclass
from commcheck.model import Cause, Machine, Remedy, Verdict, Words
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Seen:
    """The matrix, and the GPUs' names."""

    topo: NvidiaTopo = reads(NVIDIA_TOPO)
    gpus: GpuList | Unread = tries(NVIDIA_SMI_LIST)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a host has to have for each GPU to be near one."""

    gpus_per_nic: float = limit(
        2.0,
        unit="GPUs for each NIC at most",
        source="NVIDIA HGX A100 servers with four NICs share each between two GPUs",
    )


MOVE = Remedy(
    command="nvidia-smi topo -m",
    effect=Words(
        "Compare with a healthy host of this model; then move the card to the slot it has there.",
        "与同型号健康主机对比；再将网卡移至对应插槽。",
    ),
    precondition=Words(
        "Reading is free; moving a card: host drained and powered off.",
        "读取无影响；移动网卡需主机已排空并断电。",
    ),
    who="vendor",
)
TOPO_FILE = Remedy(
    command="NCCL_TOPO_FILE=/etc/nccl-topo.xml",
    effect=Words(
        "Tells NCCL the real topology where the system hides it (virtual PCIe).",
        "在系统隐藏真实拓扑（虚拟 PCIe）时告知 NCCL 实际拓扑。",
    ),
    precondition=Words(
        "A file of the cloud or the vendor for exactly this machine.",
        "使用云厂商或服务器厂商为该机型提供的文件。",
    ),
)

FAR = Cause(
    slug="gpu-nic-far",
    title=Words("A GPU has no NIC beside it", "部分 GPU 附近没有网卡"),
    meaning=Words(
        "Other GPUs of the host have a NIC below their switch and these have none: a NIC is "
        "missing or in the wrong slot.",
        "同主机其他 GPU 的交换芯片下有网卡而这些没有：网卡缺失或插槽错误。",
    ),
    remedies=(MOVE,),
)
ALL_FAR = Cause(
    slug="gpu-nic-all-far",
    title=Words("No GPU has a NIC beside it", "所有 GPU 附近都没有网卡"),
    meaning=Words(
        "Either the server is built so, or the topology is hidden: compare with its peers.",
        "可能服务器本就如此设计，也可能拓扑被隐藏：请与同组主机对比。",
    ),
    remedies=(MOVE, TOPO_FILE),
)

NEAR: Final = ("PIX", "PXB")


def judge(seen: Seen, machine: Machine, _want: Nothing, limits: Limits) -> Verdict:
    """Near is PIX or PXB to a rail."""
    topo = seen.topo
    rails = {rail.hca for rail in machine.rails}
    if not isinstance(seen.gpus, Unread) and seen.gpus.is_grace:
        return not_applicable(
            "the NICs of a Grace board hang on its CPU: NODE is the best there is"
        )
    nics = rails.intersection(topo.nics)
    if not nics:
        return undecidable("nvidia-smi topo lists none of the training NICs")
    best = {gpu: _best(topo, gpu, rails) for gpu in topo.gpus}
    far = {gpu: word for gpu, word in best.items() if word not in NEAR}
    measured = {"best_way": best}
    if not far:
        return passed(
            f"each of {many(len(best), 'GPU')} has a NIC at PIX or PXB", measured=measured
        )
    shown = ", ".join(f"{gpu} {word}" for gpu, word in list(far.items())[:8])
    reason = f"{len(far)} of {many(len(best), 'GPU')} have no NIC at PIX or PXB: {shown}"
    if machine.in_vm:
        return warned(ALL_FAR, f"{reason}, in a guest, whose bus is flat", measured=measured)
    if len(far) == len(best):
        return warned(
            ALL_FAR, f"{reason}; the same on all peers is the server's design", measured=measured
        )
    # Those that the inventory declares are all there: physical.rdma-device-count has passed.
    if len(best) > limits.gpus_per_nic * len(nics):
        share = "one NIC" if len(nics) == 1 else f"{many(len(nics), 'NIC')}"
        return not_applicable(f"{many(len(best), 'GPU')} share {share}: not each can have one near")
    return failed(FAR, reason, measured=measured)


def _best(topo: NvidiaTopo, gpu: str, rails: set[str]) -> str:
    """The nearest way of a GPU to any rail."""
    ways = {word for nic, word in topo.of(gpu).items() if nic in rails}
    return next((word for word in (*NEAR, "PHB", "NODE", "SYS") if word in ways), "none")


CHECK = Check(
    id="physical.gpu-nic-affinity",
    title=Words("Each GPU has a NIC beside it", "每个 GPU 附近都有网卡"),
    subject=Machine,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.gpu-driver", "physical.rdma-device-count"),
    causes=(FAR, ALL_FAR),
    platforms=frozenset({"gpu-roce", "gpu-ib"}),
)

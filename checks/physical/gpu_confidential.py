"""Confidential computing is off on the GPUs.

Why: With it every copy between host and GPU is encrypted and goes through a bounce buffer, and
GPUDirect RDMA is not possible: PCIe traffic falls to a few GB/s.
Reads: ``nvidia-smi --query-gpu=protected_memory.total`` of drivers from 535 on. One verdict for
each host.
By hand: ``nvidia-smi conf-compute -f`` ("CC status"); ``nvidia-smi -q | grep -A3 'Conf Compute'``.
Mend: it is a mode of the GPU's firmware, set by the owner of the platform with NVIDIA's
``gpu_cc_tool.py`` and a reset; the virtual machine's type goes with it.
Healthy though odd: a confidential machine is slow on purpose: it is a warning. GPUs and drivers
that cannot do it tell nothing, and are not judged.
"""

from __future__ import annotations

from commcheck.check import (
    Check,
    Nothing,
    Unread,
    not_applicable,
    passed,
    tries,
    undecidable,
    warned,
)
from commcheck.formats.nvidia_fabric import NVIDIA_FABRIC, FabricGpu
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """Older drivers refuse the question."""

    gpus: tuple[FabricGpu, ...] | Unread = tries(NVIDIA_FABRIC)


LEAVE = Remedy(
    command="nvidia-smi conf-compute -f",
    effect=Words(
        "Shows the mode. Train on hosts without it, or have the platform's owner set the GPUs to "
        "CC off (firmware mode, then a reset).",
        "显示该模式。请在未启用的主机上训练，或由平台负责人关闭 GPU 的 CC 模式（需复位）。",
    ),
    precondition=Words(
        "Reading is free. Turning it off ends the protection that somebody asked for.",
        "读取无影响。关闭将解除他人要求的保护。",
    ),
    who="security owner",
)

ON = Cause(
    slug="gpu-confidential-on",
    title=Words("Confidential computing is on", "启用了机密计算"),
    meaning=Words(
        "Memory of the GPU is protected: transfers are encrypted by the CPU and GPUDirect is off.",
        "GPU 显存受保护：传输由 CPU 加密，且无法使用 GPUDirect。",
    ),
    remedies=(LEAVE,),
)


def judge(seen: Seen, _machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """Protected memory is there only in that mode."""
    if isinstance(seen.gpus, Unread):
        if "not a valid field" in seen.gpus.reason:
            return not_applicable("this driver is older than confidential computing")
        return undecidable(seen.gpus.reason)
    told = {f"gpu{gpu.index}": gpu.protected_mib for gpu in seen.gpus}
    measured = {"protected_memory_mib": told}
    if on := [name for name, mib in told.items() if mib]:
        reason = f"confidential computing is on: {', '.join(on)}"
        return warned(ON, reason, measured=measured)
    if all(mib is None for mib in told.values()):
        return not_applicable("these GPUs tell of no protected memory")
    return passed("confidential computing is off", measured=measured)


CHECK = Check(
    id="physical.gpu-confidential",
    title=Words("Confidential computing is off", "未启用机密计算"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    needs=("physical.gpu-driver",),
    causes=(ON,),
    platforms=GPUS,
)

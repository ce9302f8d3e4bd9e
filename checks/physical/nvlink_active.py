"""Every NVLink of every GPU is active, at its speed.

Why: Inside a host everything goes over NVLink. With links lost the collective of that host is
slower and all others wait for it; with none NCCL goes over PCIe, ten times slower, or does not
start where the fabric manager is needed.
Reads: ``nvidia-smi nvlink -s``, and ``nvidia-smi -L`` for MIG. One verdict for each host.
By hand: ``nvidia-smi nvlink -s``, ``nvidia-smi topo -m``, ``systemctl status
nvidia-fabricmanager``, ``dmesg | grep -E 'Xid|SXid'`` (Xid 74: NVLink).
Mend: look at the fabric manager first: not running, or of another version than the driver. Restart
it and reset the GPUs only with no job on the host. The same link again: the vendor.
Healthy though odd: PCIe cards have no NVLink and are not judged; bridged ones (H100 NVL) have some.
How many there should be is known by name: 12 (A100), 18 (H100, H200, H20, B200, B300, GB200,
GB300), 8 (A800, H800). Others are compared with their neighbours in the host, or declare
``commcheck_nvlink_links`` (0: none at all). In MIG mode NVLink is off, and so it is for a guest
with one GPU of a board. A stopped fabric manager is healthy where it runs in a driver container, on
NVLink switch trays or in the hypervisor.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import (
    Check,
    Nothing,
    expects,
    failed,
    not_applicable,
    passed,
    reads,
    undecidable,
)
from commcheck.expect import NVLINK_LINKS
from commcheck.formats.nvidia_nvlink import BRIDGED, NVIDIA_NVLINK, NvlinkGpu
from commcheck.formats.nvidia_smi_list import NVIDIA_SMI_LIST, GpuList
from commcheck.lazy import dataclass, regex
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Wanted, Words
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Seen:
    """The links, and whether a GPU is split."""

    gpus: tuple[NvlinkGpu, ...] = reads(NVIDIA_NVLINK)
    listed: GpuList = reads(NVIDIA_SMI_LIST)


@dataclass(frozen=True, slots=True)
class Want:
    """How many links each GPU should have, where that is declared."""

    links: Wanted[int | None] = expects(NVLINK_LINKS)


@dataclass(frozen=True, slots=True)
class Model:
    """What a GPU of this name has: links, and GB/s of each at least."""

    name: re.Pattern[str]
    links: int
    floor_gbytes: float


# Counts by NVIDIA's data sheets, floors by Oracle's OCI HPC health checks.
MODELS: Final = (
    Model(regex(r"\bA100-SXM"), 12, 25),
    Model(regex(r"\bA800-SXM"), 8, 25),
    Model(regex(r"\bH800\b"), 8, 25),
    Model(regex(r"\bH(?:100|200|20)\b"), 18, 25),
    Model(regex(r"\bG?B[23]00\b"), 18, 50),
)
LOOK = Remedy(
    command="systemctl status nvidia-fabricmanager",
    effect=Words(
        "Shows whether the fabric manager runs, and its log: its version must be the driver's. "
        "Then dmesg for Xid and SXid.",
        "查看 fabric manager 是否运行及其日志：版本必须与驱动一致。再查看 dmesg 中的 Xid 与 SXid。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
RESTART = Remedy(
    command="systemctl restart nvidia-fabricmanager",
    effect=Words(
        "Trains the NVLinks of NVSwitch systems again: kills every job on the host. Afterwards "
        "nvidia-smi --gpu-reset, or a reboot.",
        "重新训练 NVSwitch 系统的 NVLink：会中断主机上的所有作业。"
        "之后执行 nvidia-smi --gpu-reset 或重启。",
    ),
    precondition=Words(
        "The host is drained and the scheduler knows; no process holds a GPU.",
        "主机已排空并通知调度器；没有进程占用 GPU。",
    ),
)
REPLACE = Remedy(
    command="nvidia-bug-report.sh",
    effect=Words(
        "Collects the log that the vendor wants; the same link lost again: GPU, baseboard or "
        "bridge is faulty.",
        "收集厂商所需日志；同一链路反复丢失：GPU、基板或桥接器故障。",
    ),
    precondition=Words(
        "Takes minutes; better on a drained host.", "耗时数分钟；最好在排空后执行。"
    ),
    who="vendor",
)
DECLARE: Final = "declare commcheck_nvlink_links"

LOST = Cause(
    slug="nvlink-lost",
    title=Words("NVLinks are inactive", "部分 NVLink 不活动"),
    meaning=Words(
        "A GPU works with fewer links than its neighbours or its model has: GPU, NVSwitch or "
        "bridge.",
        "GPU 的活动链路少于同机其他 GPU 或该型号应有数量：GPU、NVSwitch 或桥接器问题。",
    ),
    remedies=(LOOK, RESTART, REPLACE),
)
NONE = Cause(
    slug="nvlink-none",
    title=Words("No NVLink is active", "没有任何活动的 NVLink"),
    meaning=Words(
        "GPUs of a model with NVLink have none: usually the fabric manager is not running, or is "
        "not the driver's version.",
        "带 NVLink 的 GPU 没有任何活动链路：通常是 fabric manager 未运行或版本与驱动不符。",
    ),
    remedies=(LOOK, RESTART, REPLACE),
)
SLOW = Cause(
    slug="nvlink-slow",
    title=Words("NVLink is slow", "NVLink 速率过低"),
    meaning=Words(
        "A link is active below its model's speed.",
        "链路处于活动状态，但速率低于该型号应有值。",
    ),
    remedies=(LOOK, RESTART, REPLACE),
)


def judge(seen: Seen, machine: Machine, want: Want, _limits: Nothing) -> Verdict:
    """Links counted first, then their speed."""
    gpus, declared = seen.gpus, want.links.value
    if seen.listed.has_mig:
        return not_applicable("MIG mode: NVLink is off")
    if declared == 0:
        return not_applicable(f"no NVLink is wanted: {want.links.origin}")
    if machine.in_vm and len(gpus) == 1 and not gpus[0].active and not declared:
        return not_applicable("one GPU in a guest: its host keeps the NVLinks off")
    wanted = {gpu.index: declared or _links_of(gpu, gpus) for gpu in gpus}
    if not any(wanted.values()) and not any(gpu.links_gbytes or gpu.all_inactive for gpu in gpus):
        names = ", ".join(dict.fromkeys(gpu.name for gpu in gpus))
        return not_applicable(f"no NVLink on {names}")
    measured = {"nvlink_active": {f"gpu{gpu.index}": gpu.active for gpu in gpus}}
    fewer = [gpu for gpu in gpus if gpu.active < (wanted[gpu.index] or 0)]
    if fewer:
        by = f": {want.links.origin}" if declared else ""
        told = ", ".join(f"gpu{g.index} {g.active} of {wanted[g.index]}" for g in fewer)
        cause = NONE if all(not gpu.active for gpu in fewer) else LOST
        return failed(cause, f"NVLinks active: {told}{by}", measured=measured)
    slow = [gpu for gpu in gpus if (least := _slowest(gpu)) is not None and least < _floor(gpu)]
    if slow:
        told = ", ".join(f"gpu{g.index} {_slowest(g):g}, want {_floor(g):g}" for g in slow)
        return failed(SLOW, f"NVLink speed in GB/s: {told}", measured=measured)
    doubtful = [gpu for gpu in gpus if not declared and not _model(gpu) and _has_inactive(gpu)]
    if doubtful:
        told = ", ".join(f"gpu{gpu.index} {gpu.name}" for gpu in doubtful)
        return undecidable(
            f"NVLinks are inactive, and nothing tells how many there should be: {told}",
            turn_on=DECLARE,
        )
    counts = sorted({gpu.active for gpu in gpus})
    each = " or ".join(map(str, counts))
    return passed(
        f"{many(len(gpus), 'GPU')} with {each} NVLinks each, all active", measured=measured
    )


def _model(gpu: NvlinkGpu) -> Model | None:
    # By bridge, how many depends on the bridges.
    if BRIDGED.search(gpu.name):
        return None
    return next((model for model in MODELS if model.name.search(gpu.name)), None)


def _links_of(gpu: NvlinkGpu, gpus: tuple[NvlinkGpu, ...]) -> int | None:
    """By name, else as many as its neighbours of that name have; None: nothing tells."""
    if (model := _model(gpu)) is not None:
        return model.links
    if BRIDGED.search(gpu.name):
        return None
    most = max(other.active for other in gpus if other.name == gpu.name)
    return most or None


def _floor(gpu: NvlinkGpu) -> float:
    model = _model(gpu)
    return 0.0 if model is None else model.floor_gbytes


def _slowest(gpu: NvlinkGpu) -> float | None:
    return min((link for link in gpu.links_gbytes if link is not None), default=None)


def _has_inactive(gpu: NvlinkGpu) -> bool:
    return gpu.all_inactive or None in gpu.links_gbytes


CHECK = Check(
    id="physical.nvlink-active",
    title=Words("Every NVLink is active", "所有 NVLink 均活动"),
    subject=Machine,
    seen=Seen,
    want=Want,
    judge=judge,
    needs=("physical.gpu-driver",),
    causes=(LOST, NONE, SLOW),
    platforms=GPUS,
)

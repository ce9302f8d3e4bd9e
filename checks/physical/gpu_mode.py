"""Every GPU is whole and lets programs in: no MIG instances, no prohibiting compute mode.

Why: A GPU that is split into MIG instances has no NVLink and no GPUDirect between instances: NCCL
fails or falls back to copies through memory. In the mode Prohibited no CUDA program can start.
Reads: ``nvidia-smi --query-gpu=mig.mode.current,compute_mode,...``. One verdict for each host.
By hand: ``nvidia-smi -q | grep -A2 'MIG Mode'``; ``nvidia-smi -q -d COMPUTE``.
Mend: ``nvidia-smi -mig 0`` and a reset, on a drained host; ``nvidia-smi -c 0``.
Healthy though odd: a host for small jobs may be split on purpose: then it is no training host, and
the warning says so. Exclusive process mode is fine for one process a GPU, and a remark: tools that
run beside the job cannot use the GPU.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Check, Nothing, failed, passed, reads, undecidable, warned
from commcheck.formats.nvidia_gpu import NVIDIA_GPU, NvidiaGpu
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Seen:
    """The GPUs."""

    gpus: tuple[NvidiaGpu, ...] = reads(NVIDIA_GPU)


DEFAULT: Final = "Default"
PROHIBITED_MODE: Final = "Prohibited"

UNSPLIT = Remedy(
    command="nvidia-smi -mig 0 -i {gpu}",
    effect=Words(
        "Makes the GPU whole after its reset; all instances and their programs end.",
        "复位后 GPU 恢复为整卡；所有实例及其程序都会终止。",
    ),
    precondition=Words(
        "The host is drained and its owner does not need the instances.",
        "主机已排空，且负责人不再需要这些实例。",
    ),
)
LET_IN = Remedy(
    command="nvidia-smi -c 0 -i {gpu}",
    effect=Words("Lets programs use the GPU again, at once.", "立即允许程序使用该 GPU。"),
    precondition=Words(
        "Root; the mode was not set to keep a faulty GPU out: ask first.",
        "需要 root；先确认该模式并非为隔离故障 GPU 而设。",
    ),
)

SPLIT = Cause(
    slug="gpu-mig-on",
    title=Words("GPU is split into MIG instances", "GPU 启用了 MIG"),
    meaning=Words(
        "The GPU is in MIG mode: no NVLink and no peer access, so collectives crawl or fail.",
        "GPU 处于 MIG 模式：无 NVLink 与对等访问，集合通信极慢或失败。",
    ),
    remedies=(UNSPLIT,),
)
SPLIT_SOME = Cause(
    slug="gpu-mig-on-some",
    title=Words("Some GPUs are split, others are not", "部分 GPU 启用了 MIG"),
    meaning=Words(
        "A job over all GPUs of this host cannot use the split ones as it does the others.",
        "使用整机 GPU 的作业无法像其他卡那样使用被切分的卡。",
    ),
    remedies=(UNSPLIT,),
)
PROHIBITED = Cause(
    slug="gpu-compute-prohibited",
    title=Words("GPU lets no program in", "GPU 禁止计算"),
    meaning=Words(
        "Compute mode Prohibited: every CUDA program on this GPU fails at its start.",
        "计算模式为 Prohibited：该 GPU 上任何 CUDA 程序都会在启动时失败。",
    ),
    remedies=(LET_IN,),
)


def judge(seen: Seen, _machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """What keeps programs out first, then what splits the GPU."""
    gpus = seen.gpus
    measured = {
        "compute_mode": {gpu.label: gpu.compute_mode for gpu in gpus},
        "mig": {gpu.label: gpu.mig for gpu in gpus},
    }
    if shut := [gpu for gpu in gpus if gpu.compute_mode == PROHIBITED_MODE]:
        told = ", ".join(gpu.label for gpu in shut)
        reason = f"compute mode Prohibited on {told}, want Default"
        return failed(PROHIBITED, reason, measured=measured, gpu=shut[0].index)
    if split := [gpu for gpu in gpus if gpu.mig]:
        told = ", ".join(gpu.label for gpu in split)
        reason = f"MIG is on: {told} of {many(len(gpus), 'GPU')}; not for training over NVLink"
        if len(split) == len(gpus):
            return warned(SPLIT, reason, measured=measured, gpu=split[0].index)
        return failed(SPLIT_SOME, reason, measured=measured, gpu=split[0].index)
    if untold := [gpu.label for gpu in gpus if gpu.compute_mode is None]:
        return undecidable(f"the driver does not tell the compute mode of {', '.join(untold)}")
    modes = sorted({gpu.compute_mode or "" for gpu in gpus})
    alone = "" if modes == [DEFAULT] else "; tools beside a job cannot use its GPU"
    reason = f"{many(len(gpus), 'GPU')} whole, compute mode {', '.join(modes)}{alone}"
    return passed(reason, measured=measured)


CHECK = Check(
    id="physical.gpu-mode",
    title=Words("GPUs are whole and let programs in", "GPU 为整卡且允许计算"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    needs=("physical.gpu-driver",),
    causes=(SPLIT, SPLIT_SOME, PROHIBITED),
    platforms=GPUS,
)

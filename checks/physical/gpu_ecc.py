"""No GPU had a memory error that ECC could not correct, and ECC is on.

Why: An uncorrectable error kills the job that uses the memory, or spoils its numbers where ECC is
off. A GPU that had one tends to have the next.
Reads: ``nvidia-smi --query-gpu=ecc...``. One verdict for each host.
By hand: ``nvidia-smi -q -d ECC``; ``dmesg | grep -E 'Xid.*: (48|94|95)'``.
Mend: drain the host, reset the GPU (``nvidia-smi -r -i N``) or reboot: the count since the driver
was loaded starts anew and pending repairs happen. Again within days: the vendor's field diagnosis.
Healthy though odd: corrected errors are what ECC is for, and are not judged. An error that was
kept to one program (Xid 94) leaves the GPU usable until its reset. Cards without ECC are not
judged; ECC off everywhere is a warning.
"""

from __future__ import annotations

from commcheck.check import (
    Check,
    Nothing,
    failed,
    limit,
    not_applicable,
    passed,
    reads,
    undecidable,
    warned,
)
from commcheck.formats.nvidia_gpu import NVIDIA_GPU, NvidiaGpu
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The GPUs."""

    gpus: tuple[NvidiaGpu, ...] = reads(NVIDIA_GPU)


@dataclass(frozen=True, slots=True)
class Limits:
    """How many uncorrectable errors of a GPU are let pass."""

    uncorrected: int = limit(
        0, unit="errors since the driver was loaded", source="NVIDIA GPU memory error management"
    )


RESET = Remedy(
    command="nvidia-smi -r -i {gpu}",
    effect=Words(
        "Resets the GPU: repairs that wait are done, the count starts anew. On NVSwitch boards all "
        "GPUs are reset together; a reboot does the same.",
        "复位 GPU：完成待处理的修复并清零计数。NVSwitch 主板上所有 GPU 一同复位；重启等效。",
    ),
    precondition=Words(
        "The host is drained and no process holds a GPU (also monitoring).",
        "主机已排空，且无进程占用 GPU（包括监控）。",
    ),
)
REPLACE = Remedy(
    command="nvidia-bug-report.sh",
    effect=Words(
        "Collects what the vendor wants. Errors that come back after a reset: field diagnosis, "
        "then a new GPU.",
        "收集厂商所需信息。复位后再次出错：进行现场诊断，之后更换 GPU。",
    ),
    precondition=Words(
        "Takes minutes; better on a drained host.", "耗时数分钟；最好在排空后执行。"
    ),
    who="vendor",
)
TURN_ON = Remedy(
    command="nvidia-smi -e 1 -i {gpu}",
    effect=Words(
        "ECC is on after the next reset or reboot; a little memory goes to it.",
        "下次复位或重启后启用 ECC；会占用少量显存。",
    ),
    precondition=Words("The host is drained for the reset.", "复位前主机已排空。"),
)

UNCORRECTED = Cause(
    slug="gpu-uncorrectable-errors",
    title=Words("GPU memory has uncorrectable errors", "GPU 显存出现不可纠正错误"),
    meaning=Words(
        "Since the driver was loaded the GPU's memory gave wrong data that ECC could only detect.",
        "自驱动加载以来，GPU 显存出现 ECC 只能检测而无法纠正的错误。",
    ),
    remedies=(RESET, REPLACE),
)
WANTS_RESET = Cause(
    slug="gpu-requires-reset",
    title=Words("GPU requires a reset", "GPU 需要复位"),
    meaning=Words(
        "The driver answers with 'GPU requires reset' in place of values: no program can use it.",
        "驱动以“GPU requires reset”代替数值：任何程序都无法使用该 GPU。",
    ),
    remedies=(RESET, REPLACE),
)
ECC_OFF = Cause(
    slug="gpu-ecc-off",
    title=Words("ECC is off", "ECC 未启用"),
    meaning=Words(
        "Memory errors are neither corrected nor noticed: numbers go wrong without a word.",
        "显存错误既不纠正也不上报：数值可能静默出错。",
    ),
    remedies=(TURN_ON,),
)


def judge(seen: Seen, _machine: Machine, _want: Nothing, limits: Limits) -> Verdict:
    """A GPU that wants a reset first, then errors, then the mode."""
    gpus = seen.gpus
    measured = {"uncorrected_errors": {gpu.label: gpu.uncorrected for gpu in gpus}}
    if waiting := [gpu for gpu in gpus if gpu.needs_reset]:
        told = ", ".join(f"{gpu.label} ({gpu.pci})" for gpu in waiting)
        reason = f"the driver says that a reset is required: {told}"
        return failed(WANTS_RESET, reason, measured=measured, gpu=waiting[0].index)
    bad = [gpu for gpu in gpus if (gpu.uncorrected or 0) > limits.uncorrected]
    if bad:
        told = ", ".join(f"{gpu.label} ({gpu.pci}) {gpu.uncorrected}" for gpu in bad)
        reason = f"uncorrectable memory errors since the driver was loaded: {told}"
        return failed(UNCORRECTED, reason, measured=measured, gpu=bad[0].index)
    if all(gpu.ecc is None and gpu.uncorrected is None for gpu in gpus):
        return not_applicable("the GPUs have no ECC, or the driver tells nothing of it")
    if off := [gpu for gpu in gpus if gpu.ecc is False]:
        told = ", ".join(gpu.label for gpu in off)
        return warned(ECC_OFF, f"ECC is off: {told}", measured=measured, gpu=off[0].index)
    if untold := [gpu for gpu in gpus if gpu.uncorrected is None]:
        return undecidable(
            "the driver counts no memory errors of " + ", ".join(gpu.label for gpu in untold)
        )
    return passed(f"no uncorrectable memory error on {len(gpus)} GPUs", measured=measured)


CHECK = Check(
    id="physical.gpu-ecc",
    title=Words("No uncorrectable GPU memory error", "GPU 显存无不可纠正错误"),
    subject=Machine,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.gpu-driver",),
    causes=(UNCORRECTED, WANTS_RESET, ECC_OFF),
    platforms=GPUS,
)

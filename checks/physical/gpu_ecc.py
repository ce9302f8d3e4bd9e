"""No GPU had a memory error that ECC could not correct, none waits for a reset, and ECC is on.

Why: An uncorrectable error kills the job that uses the memory, or spoils its numbers where ECC is
off. A GPU that had one tends to have the next. One that the driver wants reset looks idle and
healthy, and every program on it hangs or fails.
Reads: ``nvidia-smi --query-gpu=ecc...``; of ``nvidia-smi -q`` the recovery action and the threshold
of SRAM errors, where the driver tells them. One verdict for each host.
By hand: ``nvidia-smi -q -d ECC``; ``nvidia-smi -q | grep -E 'Recovery Action|Reset Required|SRAM
Threshold'``; ``dmesg | grep -E 'Xid.*: (48|94|95|154)'``.
Mend: drain the host, reset the GPU (``nvidia-smi -r -i N``) or reboot: the count since the driver
was loaded starts anew and pending repairs happen. Again within days: the vendor's field diagnosis.
Where the driver asks for a reboot, a reset is not enough. The SRAM threshold is a criterion of
NVIDIA's for the exchange, and no reset takes it back.
Healthy though odd: corrected errors are what ECC is for, and are not judged. An error that was
kept to one program (Xid 94) leaves the GPU usable until its reset. Cards without ECC are not
judged; ECC off everywhere is a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from commcheck.formats.nvidia_gpu import NVIDIA_GPU, NvidiaGpu
from commcheck.formats.nvidia_recovery import NVIDIA_RECOVERY, RecoveryGpu
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Seen:
    """The GPUs, and what the driver asks for."""

    gpus: tuple[NvidiaGpu, ...] = reads(NVIDIA_GPU)
    recovery: tuple[RecoveryGpu, ...] | Unread = tries(NVIDIA_RECOVERY)


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
        "The host is drained and no process holds a GPU (also monitoring); nvidia-bug-report.sh "
        "was run before.",
        "主机已排空，且无进程占用 GPU（包括监控）；事先执行 nvidia-bug-report.sh。",
    ),
)
REBOOT = Remedy(
    command="systemctl reboot",
    effect=Words(
        "Starts the driver and all GPUs anew; ends everything on the host. The same GPU again "
        "within days: the vendor.",
        "重新启动驱动与所有 GPU；主机上的所有任务都会终止。数日内同一 GPU 复发：联系厂商。",
    ),
    precondition=Words(
        "The host is drained and the scheduler knows; nvidia-bug-report.sh was run before.",
        "主机已排空并通知调度器；事先执行 nvidia-bug-report.sh。",
    ),
)
DOMAIN = Remedy(
    command="nvidia-imex-ctl -N",
    effect=Words(
        "Shows the nodes of the IMEX domain and which are not ready. Then the log of nvidia-imex "
        "on those.",
        "显示 IMEX 域的节点及未就绪者。再查看这些节点上 nvidia-imex 的日志。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
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
        "The driver asks for a reset, or answers with 'GPU requires reset' in place of values: "
        "programs on the GPU hang, fail or are slow until then. For 'Drain P2P' all programs that "
        "reach other GPUs must end first; then it says what is next.",
        "驱动要求复位，或以“GPU requires reset”代替数值：复位之前其上的程序会卡住、失败或变慢。"
        "若为“Drain P2P”，须先结束所有跨 GPU 通信的程序，之后驱动会给出下一步。",
    ),
    remedies=(RESET, REPLACE),
)
WANTS_REBOOT = Cause(
    slug="gpu-requires-reboot",
    title=Words("GPU requires a reboot of the host", "GPU 需要重启主机"),
    meaning=Words(
        "The driver says that a fault of the GPU may have left the system itself in disorder: a "
        "reset of the GPU is not enough.",
        "驱动报告 GPU 故障可能已使系统状态不一致：仅复位 GPU 不够。",
    ),
    remedies=(REBOOT, REPLACE),
)
WANTS_DOMAIN = Cause(
    slug="gpu-imex-domain",
    title=Words("IMEX domain has to recover", "IMEX 域需要恢复"),
    meaning=Words(
        "The GPU itself is usable; the domain of hosts that share memory over NVLink is not whole.",
        "GPU 本身可用；但主机间经 NVLink 共享显存的 IMEX 域不完整。",
    ),
    remedies=(DOMAIN,),
)
SRAM = Cause(
    slug="gpu-sram-worn",
    title=Words("Too many SRAM errors over the GPU's life", "GPU 的 SRAM 错误累计超限"),
    meaning=Words(
        "The GPU's caches had more uncorrectable errors than NVIDIA lets pass: NVIDIA exchanges "
        "such a GPU.",
        "GPU 片上缓存的不可纠正错误超过 NVIDIA 阈值：NVIDIA 会更换此类 GPU。",
    ),
    remedies=(REPLACE,),
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


DOMAIN_ACTION: Final = "Recover IMEX Domain"


def judge(seen: Seen, _machine: Machine, _want: Nothing, limits: Limits) -> Verdict:
    """What the driver asks for first, then errors, then the mode."""
    gpus = seen.gpus
    recovery = () if isinstance(seen.recovery, Unread) else seen.recovery
    measured: dict[str, object] = {
        "uncorrected_errors": {gpu.label: gpu.uncorrected for gpu in gpus}
    }
    # What stands in place of a value says it too, also where nothing else was told.
    asks = {gpu.index: "Reset" for gpu in gpus if gpu.needs_reset}
    asks |= {gpu.index: gpu.action for gpu in recovery if gpu.action}
    if asks:
        measured["recovery_action"] = {f"gpu{at}": word for at, word in sorted(asks.items())}
    for cause in (WANTS_REBOOT, WANTS_RESET):
        if mine := _asking(asks, cause):
            reason = f"the driver asks for: {_told(mine, gpus, asks)}"
            return failed(cause, reason, measured=measured, gpu=mine[0])
    if worn := [gpu.index for gpu in recovery if gpu.sram_worn]:
        reason = f"uncorrectable errors of SRAM above NVIDIA's threshold: {_told(worn, gpus, {})}"
        return failed(SRAM, reason, measured=measured)
    bad = [gpu for gpu in gpus if (gpu.uncorrected or 0) > limits.uncorrected]
    if bad:
        told = ", ".join(f"{gpu.label} ({gpu.pci}) {gpu.uncorrected}" for gpu in bad)
        reason = f"uncorrectable memory errors since the driver was loaded: {told}"
        return failed(UNCORRECTED, reason, measured=measured, gpu=bad[0].index)
    if mine := _asking(asks, WANTS_DOMAIN):
        reason = f"the driver asks for: {_told(mine, gpus, asks)}"
        return warned(WANTS_DOMAIN, reason, measured=measured)
    if all(gpu.ecc is None and gpu.uncorrected is None for gpu in gpus):
        return not_applicable("the GPUs have no ECC, or the driver tells nothing of it")
    if off := [gpu for gpu in gpus if gpu.ecc is False]:
        told = ", ".join(gpu.label for gpu in off)
        return warned(ECC_OFF, f"ECC is off: {told}", measured=measured, gpu=off[0].index)
    if untold := [gpu for gpu in gpus if gpu.uncorrected is None]:
        return undecidable(
            "the driver counts no memory errors of " + ", ".join(gpu.label for gpu in untold)
        )
    return passed(f"no uncorrectable memory error on {many(len(gpus), 'GPU')}", measured=measured)


def _asking(asks: Mapping[int, str], cause: Cause) -> list[int]:
    """The GPUs for which the driver's word means this.

    A word of a younger driver is taken for a reset: none of those known leaves the GPU usable.
    """
    means = {at: WANTS_REBOOT if "Reboot" in word else WANTS_RESET for at, word in asks.items()}
    means |= {at: WANTS_DOMAIN for at, word in asks.items() if word == DOMAIN_ACTION}
    return [at for at in sorted(asks) if means[at] is cause]


def _told(mine: Iterable[int], gpus: Iterable[NvidiaGpu], words: Mapping[int, str]) -> str:
    names = {gpu.index: f"{gpu.label} ({gpu.pci})" for gpu in gpus}
    return ", ".join(f"{names.get(at, f'gpu{at}')} {words.get(at, '')}".strip() for at in mine)


CHECK = Check(
    id="physical.gpu-ecc",
    title=Words("No uncorrectable GPU memory error", "GPU 显存无不可纠正错误"),
    subject=Machine,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.gpu-driver",),
    causes=(UNCORRECTED, WANTS_RESET, WANTS_REBOOT, WANTS_DOMAIN, SRAM, ECC_OFF),
    platforms=GPUS,
)

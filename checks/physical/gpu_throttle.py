"""No GPU's clocks are held down by heat, or by a power supply that cannot keep up.

Why: A GPU that is too hot, or whose server pulls the power brake, halves its clocks. Every step of
the job waits for it, and neither the network nor the logs of the job say why.
Reads: ``nvidia-smi --query-gpu=clocks_throttle_reasons.active,...``; for how long it was so since
the driver came, of ``nvidia-smi -q`` where it counts that. One verdict for each host.
By hand: ``nvidia-smi -q -d PERFORMANCE``; under load ``nvidia-smi dmon -s pvct`` shows power,
thermal violations and clocks.
Mend: heat: fans, air inlet, blanking plates, coolant flow, the room. Power brake: power supplies
and their redundancy (BMC), PDU limits. A GPU that alone is hot among cool neighbours: its heat
sink; the vendor.
Healthy though odd: the software power cap holds clocks down on every busy GPU at its limit, and an
idle one lowers them itself: both are right. Clocks set by hand (``-ac``, ``-lgc``) are a remark
where all GPUs of the host have them. Hardware slowdown without a cause may be a change of state,
and is a warning. What was, and is no more, is a warning: the counters do not say when. A virtual
machine may not be told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from commcheck.check import (
    Check,
    Nothing,
    Unread,
    failed,
    limit,
    passed,
    reads,
    tries,
    undecidable,
    warned,
)
from commcheck.counters import length
from commcheck.formats.nvidia_gpu import NVIDIA_GPU, NvidiaGpu
from commcheck.formats.nvidia_slowed import NVIDIA_SLOWED, SlowedGpu
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Seen:
    """The GPUs as they are, and for how long they were slowed before."""

    gpus: tuple[NvidiaGpu, ...] = reads(NVIDIA_GPU)
    before: tuple[SlowedGpu, ...] | Unread = tries(NVIDIA_SLOWED)


@dataclass(frozen=True, slots=True)
class Limits:
    """From where on a GPU counts as working, and what it may have been slowed before."""

    busy_percent: int = limit(
        10, unit="percent", source="own choice: a GPU that works for a job is far above"
    )
    before_s: float = limit(
        600.0,
        unit="s since the driver came",
        source="own choice: healthy GPUs count none; less is one test of a power supply",
    )


# nvmlClocksEventReasons of nvml.h.
IDLE: Final = 0x1
SET_BY_HAND: Final = 0x2
POWER_CAP: Final = 0x4
HW_SLOWDOWN: Final = 0x8
SW_THERMAL: Final = 0x20
HW_THERMAL: Final = 0x40
POWER_BRAKE: Final = 0x80

LOOK = Remedy(
    command="nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER",
    effect=Words(
        "Shows reasons, temperatures and power of each GPU; compare with its neighbours.",
        "显示每个 GPU 的降频原因、温度与功耗；与同机其他 GPU 对比。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
COOL = Remedy(
    command="ipmitool sdr type Temperature",
    effect=Words(
        "Shows inlet and board temperatures. Then look at fans, air flow, coolant and the room; a "
        "single hot GPU needs its heat sink looked at.",
        "显示进风口与主板温度。随后检查风扇、风道、液冷与机房；若仅单个 GPU 过热，检查其散热器。",
    ),
    precondition=Words(
        "Reading is free; opening the server: host drained and powered off.",
        "读取无影响；开箱需主机已排空并断电。",
    ),
    who="vendor",
)
FEED = Remedy(
    command="ipmitool sdr type 'Power Supply'",
    effect=Words(
        "Shows the power supplies: one that is lost or overloaded pulls the brake. Then the PDU "
        "and the power limit in the BMC.",
        "显示电源状态：掉电或过载的电源会触发功率制动。再检查 PDU 与 BMC 的功率上限。",
    ),
    precondition=Words(
        "Reading is free; a supply is changed with the host drained.",
        "读取无影响；更换电源前排空主机。",
    ),
    who="vendor",
)
UNSET = Remedy(
    command="nvidia-smi -rgc",
    effect=Words(
        "Gives the clocks back to the driver (with -rac for application clocks).",
        "将时钟交还驱动管理（应用时钟用 -rac）。",
    ),
    precondition=Words(
        "No job on the host; not where the site sets clocks on purpose: then on all GPUs alike.",
        "主机无作业；若站点有意设定时钟，应在所有 GPU 上保持一致。",
    ),
)

HOT = Cause(
    slug="gpu-too-hot",
    title=Words("GPU is slowed by heat", "GPU 因过热降频"),
    meaning=Words(
        "The GPU is above its temperature limit and lowers its clocks: by half or more where the "
        "hardware does it.",
        "GPU 超过温度上限而降低时钟；由硬件触发时降至一半或更低。",
    ),
    remedies=(LOOK, COOL),
)
BRAKED = Cause(
    slug="gpu-power-brake",
    title=Words("GPU is slowed by the power brake", "GPU 被功率制动降频"),
    meaning=Words(
        "The server tells its GPUs to halve their clocks, since a power supply is lost or "
        "overloaded.",
        "因电源掉电或过载，服务器要求 GPU 将时钟减半。",
    ),
    remedies=(LOOK, FEED),
)
SLOWED = Cause(
    slug="gpu-hardware-slowdown",
    title=Words("GPU reports a hardware slowdown", "GPU 报告硬件降频"),
    meaning=Words(
        "The hardware halves the clocks without saying why: too much power drawn at once, or a "
        "change of state that just happens.",
        "硬件将时钟减半但未说明原因：瞬时功率过高，或恰在切换状态。",
    ),
    remedies=(LOOK, FEED),
)
BEFORE = Cause(
    slug="gpu-was-slowed",
    title=Words("GPU was slowed by heat or power brake", "GPU 曾因过热或功率制动降频"),
    meaning=Words(
        "Since the driver came the hardware held the clocks down for that long, and it does not "
        "now: jobs of that time were slow. Look again under load.",
        "自驱动加载以来硬件累计降频达到该时长，目前未降频：当时的作业较慢。请在负载下复查。",
    ),
    remedies=(LOOK, COOL, FEED),
)
HELD = Cause(
    slug="gpu-clocks-set-on-some",
    title=Words("Clocks set by hand on some GPUs", "部分 GPU 被手动设定时钟"),
    meaning=Words(
        "Working GPUs of one host have clocks set by hand and others have not: the slowest sets "
        "the pace of the job.",
        "同一主机上部分正在工作的 GPU 被手动设定时钟而其他未设：最慢者决定作业速度。",
    ),
    remedies=(LOOK, UNSET),
)


def judge(seen: Seen, _machine: Machine, _want: Nothing, limits: Limits) -> Verdict:
    """The worst reason decides; what only saves power or keeps a limit is right."""
    gpus = [gpu for gpu in seen.gpus if gpu.slowed_by is not None]
    if len(gpus) < len(seen.gpus):
        untold = _named(gpu for gpu in seen.gpus if gpu.slowed_by is None)
        return undecidable(f"the driver does not tell why clocks are low: {untold}")
    measured = {
        "slowed_by": {gpu.label: f"0x{gpu.slowed_by or 0:x}" for gpu in gpus},
        "temperature_c": {gpu.label: gpu.temperature_c for gpu in gpus},
    }
    busy = [gpu for gpu in gpus if (gpu.load_percent or 0) >= limits.busy_percent]
    hot = [
        gpu
        for gpu in gpus
        if _has(gpu, HW_THERMAL) or (_has(gpu, SW_THERMAL) and not _has(gpu, IDLE))
    ]
    if hot:
        return failed(HOT, f"slowed by heat: {_named(hot, heat=True)}", measured=measured)
    if braked := [gpu for gpu in gpus if _has(gpu, POWER_BRAKE)]:
        return failed(BRAKED, f"slowed by the power brake: {_named(braked)}", measured=measured)
    if slowed := [gpu for gpu in gpus if _has(gpu, HW_SLOWDOWN) and not _has(gpu, IDLE)]:
        return warned(SLOWED, f"hardware slowdown: {_named(slowed)}", measured=measured)
    before = () if isinstance(seen.before, Unread) else seen.before
    if was := [told for gpu in before if (told := _was(gpu, limits))]:
        reason = f"slowed since the driver came, not now: {', '.join(was)}"
        return warned(BEFORE, reason, measured=measured)
    held = [gpu for gpu in busy if _has(gpu, SET_BY_HAND)]
    if held and len(held) < len(busy):
        reason = f"clocks set by hand on {_named(held)}, not on the other GPUs that work"
        return warned(HELD, reason, measured=measured)
    said = f"none of {many(len(gpus), 'GPU')} is slowed by heat or power supply"
    remarks = [
        f"{len(gpus) - len(busy)} without load" if len(busy) < len(gpus) else "",
        "clocks set by hand" if held else "",
        "at their power limit" if any(_has(gpu, POWER_CAP) for gpu in busy) else "",
    ]
    return passed("; ".join([said, *filter(None, remarks)]), measured=measured)


def _has(gpu: NvidiaGpu, reason: int) -> bool:
    return bool((gpu.slowed_by or 0) & reason)


def _was(gpu: SlowedGpu, limits: Limits) -> str:
    """What it was slowed by before, and how long; "" where that is not worth a word."""
    times = (("heat", gpu.thermal_s or 0.0), ("power brake", gpu.brake_s or 0.0))
    long = [f"{length(seconds)} by {why}" for why, seconds in times if seconds > limits.before_s]
    return f"gpu{gpu.index} {' and '.join(long)}" if long else ""


def _named(gpus: Iterable[NvidiaGpu], *, heat: bool = False) -> str:
    return ", ".join(
        f"{gpu.label} ({gpu.temperature_c} °C)"
        if heat and gpu.temperature_c is not None
        else f"{gpu.label} ({gpu.pci})"
        for gpu in gpus
    )


CHECK = Check(
    id="physical.gpu-throttle",
    title=Words("No GPU is slowed by heat or power", "GPU 未因过热或供电降频"),
    subject=Machine,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.gpu-driver",),
    causes=(HOT, BRAKED, SLOWED, BEFORE, HELD),
    platforms=GPUS,
)

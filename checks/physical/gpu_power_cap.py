"""Every GPU may draw the power that it is made for.

Why: A GPU below its neighbours' power limit is slower than they are under load, and the whole job
waits for it. The limit is gone after a driver restart, so hosts come to differ.
Reads: ``nvidia-smi --query-gpu=power.limit,power.default_limit,...``. One verdict for each host.
By hand: ``nvidia-smi -q -d POWER``, "Current" or "Requested Power Limit" and "Default Power Limit".
Mend: ``nvidia-smi -pl WATTS`` on every GPU, or on none; look for the unit or prolog that sets it.
Healthy though odd: a site may cap all its GPUs on purpose: declare ``commcheck_gpu_power_watts``.
The same cap on all GPUs of a host is a warning, different caps in one host are a fail. A limit
above the default is nobody's fault.
"""

from __future__ import annotations

from collections.abc import Iterable

from commcheck.check import (
    Check,
    Nothing,
    expects,
    failed,
    not_applicable,
    passed,
    reads,
    undecidable,
    warned,
)
from commcheck.expect import GPU_POWER_WATTS
from commcheck.formats.nvidia_gpu import NVIDIA_GPU, NvidiaGpu
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Wanted, Words
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Seen:
    """The GPUs."""

    gpus: tuple[NvidiaGpu, ...] = reads(NVIDIA_GPU)


@dataclass(frozen=True, slots=True)
class Want:
    """The site's own limit, where it has one."""

    watts: Wanted[int | None] = expects(GPU_POWER_WATTS)


SET = Remedy(
    command="nvidia-smi -pl {watts}",
    effect=Words(
        "Sets the limit of all GPUs of the host, at once and until the driver is loaded anew.",
        "立即设置主机所有 GPU 的功率上限，重新加载驱动后失效。",
    ),
    precondition=Words(
        "Root. Power and cooling of the rack allow it; a cap set on purpose stays: declare it.",
        "需要 root。机柜供电与散热允许；若为有意限制，应在清单中声明。",
    ),
)
DECLARE = Remedy(
    command="nvidia-smi -q -d POWER",
    effect=Words(
        "Shows all limits. Where the cap is meant, set commcheck_gpu_power_watts to it.",
        "显示所有上限。若有意限制，请将 commcheck_gpu_power_watts 设为该值。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)

UNEQUAL = Cause(
    slug="gpu-power-limits-differ",
    title=Words("GPUs of a host have unlike power limits", "同机 GPU 功率上限不一致"),
    meaning=Words(
        "Some GPUs may draw less than others of the same model beside them: they are slower under "
        "load.",
        "同型号 GPU 中部分功率上限更低：负载下更慢，拖累整个作业。",
    ),
    remedies=(SET, DECLARE),
)
LOWERED = Cause(
    slug="gpu-power-limit-low",
    title=Words("GPU power limit is lowered", "GPU 功率上限被调低"),
    meaning=Words(
        "The limit is below the default of this GPU, or below what is declared.",
        "上限低于该 GPU 的默认值或声明值。",
    ),
    remedies=(SET, DECLARE),
)
OVERRULED = Cause(
    slug="gpu-power-limit-overruled",
    title=Words("Another limiter holds the GPU's power", "GPU 功率受其他限制"),
    meaning=Words(
        "The limit in force is below the one that was set: the server's firmware or the module "
        "holds it down.",
        "生效的上限低于设定值：服务器固件或模块限制了功率。",
    ),
    remedies=(DECLARE,),
)


def judge(seen: Seen, _machine: Machine, want: Want, _limits: Nothing) -> Verdict:
    """Against each other, then against what is declared or the default."""
    gpus, declared = seen.gpus, want.watts.value
    if all(gpu.limit_watts is None for gpu in gpus):
        return not_applicable("the driver tells no power limit of these GPUs")
    if untold := [gpu for gpu in gpus if gpu.limit_watts is None]:
        names = ", ".join(gpu.label for gpu in untold)
        return undecidable(f"the driver tells no power limit of {names}")
    measured = {"power_limit_watts": {gpu.label: gpu.limit_watts for gpu in gpus}}
    for name in dict.fromkeys(gpu.name for gpu in gpus):
        alike = [gpu for gpu in gpus if gpu.name == name]
        most = max(gpu.limit_watts or 0 for gpu in alike)
        less = [gpu for gpu in alike if (gpu.limit_watts or 0) < most]
        if less:
            reason = f"power limit {_told(less)}, others of the host have {most:g} W"
            return failed(UNEQUAL, reason, measured=measured, watts=f"{most:g}")
    low = [gpu for gpu in gpus if (gpu.limit_watts or 0) < (declared or gpu.default_watts or 0)]
    if low:
        wanted = declared or low[0].default_watts or 0
        by = str(want.watts.origin) if declared else "the default of this GPU"
        reason = f"power limit {_told(low)}, want {wanted:g} W: {by}"
        say = failed if declared else warned
        return say(LOWERED, reason, measured=measured, watts=f"{wanted:g}")
    held = [gpu for gpu in gpus if gpu.enforced_watts and gpu.enforced_watts < _least(gpu)]
    if held:
        told = ", ".join(f"{gpu.label} {gpu.enforced_watts:g} W" for gpu in held)
        reason = f"power limit in force {told}, set {held[0].limit_watts:g} W"
        return warned(OVERRULED, reason, measured=measured)
    limits = " or ".join(sorted({f"{gpu.limit_watts:g} W" for gpu in gpus}))
    return passed(f"power limit {limits} on {many(len(gpus), 'GPU')}", measured=measured)


def _least(gpu: NvidiaGpu) -> float:
    """What is set, less a watt: limits are told rounded."""
    return (gpu.limit_watts or 0) - 1


def _told(gpus: Iterable[NvidiaGpu]) -> str:
    return ", ".join(f"{gpu.label} {gpu.limit_watts:g} W" for gpu in gpus)


CHECK = Check(
    id="physical.gpu-power-cap",
    title=Words("No GPU's power limit is lowered", "GPU 功率上限未被调低"),
    subject=Machine,
    seen=Seen,
    want=Want,
    judge=judge,
    needs=("physical.gpu-driver",),
    causes=(UNEQUAL, LOWERED, OVERRULED),
    platforms=GPUS,
)

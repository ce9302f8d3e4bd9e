"""Model flops utilisation: what a step computes by what its device could; peaks with sources."""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import limit, passed, undecidable, warned
from commcheck.frameworks.flops_profiler import Profile
from commcheck.lazy import dataclass, regex
from commcheck.model import Cause, Remedy, Verdict, Words

CHECK_ID: Final = "runtime.mfu"
TITLE: Final = Words("Share of the peak that training gets", "训练达到的算力利用率（MFU）")


@dataclass(frozen=True, slots=True)
class Peak:
    """Dense 16-bit operations per second of one device, and where that is written."""

    tflops: float
    source: str


PEAKS: Final = (
    (regex(r"\bB200\b"), Peak(2250.0, "NVIDIA DGX B200 datasheet, dense BF16")),
    (regex(r"\bGB200\b"), Peak(2500.0, "NVIDIA GB200 NVL72 datasheet, dense BF16")),
    (regex(r"\bH20\b"), Peak(148.0, "NVIDIA H20 product brief, dense BF16")),
    (regex(r"\bH[18]00 PCIe\b", re.I), Peak(756.0, "NVIDIA H100 datasheet, PCIe, dense BF16")),
    (regex(r"\bH[12]00 NVL\b", re.I), Peak(835.0, "NVIDIA H200 datasheet, NVL, dense BF16")),
    (regex(r"\bH[128]00\b|\bGH200\b"), Peak(989.4, "NVIDIA H100 datasheet, SXM, dense BF16")),
    (regex(r"\bA[18]00\b"), Peak(312.0, "NVIDIA A100 datasheet, dense BF16")),
    (regex(r"\bL40S\b"), Peak(362.0, "NVIDIA L40S datasheet, dense BF16")),
    (regex(r"\bA10\b"), Peak(125.0, "NVIDIA A10 datasheet, dense BF16")),
    (regex(r"\bV100\b"), Peak(125.0, "NVIDIA V100 datasheet, FP16")),
    (regex(r"\bMI300X\b"), Peak(1307.4, "AMD MI300X datasheet, dense BF16")),
    (regex(r"910B2C?\b"), Peak(376.0, "Huawei Atlas 900 A2 PoD white paper, FP16")),
    (regex(r"910B3\b"), Peak(313.0, "Huawei Atlas 800T A2 user guide, FP16")),
    (regex(r"910B4\b"), Peak(280.0, "Huawei Atlas 300T A2 user guide, FP16")),
    (regex(r"910A\b"), Peak(256.0, "Huawei Ascend 910, Hot Chips 2019, FP16")),
)
"""By the device's name as nvidia-smi, npu-smi or torch print it, the special before the general.

Of Ascend 910B1 and 910C no public document names a peak that holds for one device of torch_npu.
"""


def peak_of(device: str) -> Peak | None:
    """The peak of a device by its name; None where it is not in the table."""
    return next((peak for pattern, peak in PEAKS if pattern.search(device)), None)


@dataclass(frozen=True, slots=True)
class MfuLimits:
    """Below what share of the peak something waits."""

    mfu_warn: float = limit(
        0.20,
        unit="of the peak",
        source="public reports of dense models on A100 and H100: 35 to 55 % (Megatron-LM, MLPerf)",
    )


PROFILE = Remedy(
    command="commcheck analyze trace rank0.json.gz",
    effect=Words(
        "Shows what the time goes to: communication, launches of small kernels, late ranks, input.",
        "显示时间去向：通信、小内核下发、慢 rank 或数据输入。",
    ),
    precondition=Words("A profiler trace of a few steps.", "需要若干步的性能跟踪。"),
)
LOW = Cause(
    slug="mfu-low",
    title=Words("Training uses little of the device", "训练算力利用率低"),
    meaning=Words(
        "The step takes several times what its arithmetic takes at the device's peak.",
        "步时间是其算力下限的数倍。",
    ),
    remedies=(PROFILE,),
)
PASSES: Final = 3
"""Forward and backward by the forward alone; recomputation is no use of the model's."""


def utilisation(flops: float, seconds: float, peak: Peak) -> float:
    """Share of the peak. ``flops`` of one rank in a time of ``seconds``."""
    return flops / seconds / (peak.tflops * 1e12)


def judge(profile: Profile, peak: Peak | None, where: str, limits: MfuLimits) -> Verdict:
    """MFU of one summary; the forward pass alone decides nothing."""
    if peak is None:
        return undecidable(
            f"{where}: the peak of the device is not known", turn_on="name it: --device 'H100'"
        )
    forward = utilisation(profile.fwd_flops, profile.fwd_s, peak)
    of = f"of {peak.tflops:g} TFLOPS ({peak.source})"
    if profile.iter_s is None or profile.iter_s <= 0:
        return undecidable(
            f"{where}: the forward pass reaches {forward:.0%} {of}; the whole step is not in it",
            turn_on='"wall_clock_breakdown": true',
        )
    mfu = utilisation(PASSES * profile.fwd_flops, profile.iter_s, peak)
    measured = {
        "mfu": round(mfu, 4),
        "forward_share": round(forward, 4),
        "step_s": profile.iter_s,
        "fwd_tflop": round(profile.fwd_flops / 1e12, 3),
        "peak_tflops": peak.tflops,
    }
    reason = f"{where}: step {profile.step} takes {profile.iter_s * 1e3:.0f} ms, MFU {mfu:.0%} {of}"
    if max(mfu, forward) > 1:
        return undecidable(
            f"{reason}: more than there is, so that peak or flops are wrong",
            turn_on="name the device, or its peak in 16 bits without sparsity",
        )
    if mfu < limits.mfu_warn:
        return warned(
            LOW, f"{reason}, want {limits.mfu_warn:.0%}", measured=measured, rule="MFU-001"
        )
    return passed(reason, measured=measured)

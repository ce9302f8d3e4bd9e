"""The thresholds by which a trace is judged, each with its unit and source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from commcheck.check import limit
from commcheck.lazy import dataclass

_OURS = "commcheck: above run-to-run noise of a healthy job, a third of the step is worth a day"


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a share becomes a warning or a failure."""

    exposed_warn: float = limit(0.15, unit="of the step", source=_OURS)
    exposed_fail: float = limit(0.30, unit="of the step", source=_OURS)
    comm_share: float = limit(
        0.30,
        unit="of the step",
        source="commcheck: with less communication a missing overlap is less than sure to matter",
    )
    overlap: float = limit(
        0.50,
        unit="of communication",
        source="PyTorch DDP design (Li et al., VLDB 2020): well over half hides under the backward",
    )
    skew_share: float = limit(
        0.20,
        unit="of communication",
        source="commcheck: with more of it spent waiting, its time says nothing of the wire",
    )
    late_share: float = limit(
        0.03,
        unit="of the step",
        source="commcheck: one public FSDP case is 2.8 % by one collective and 36 % by their sum",
    )
    late_us: float = limit(
        50.0, unit="us", source="commcheck: launch jitter of one host is tens of microseconds"
    )
    late_own: float = limit(
        0.33,
        unit="of the waiting",
        source="commcheck: with less of it for one rank, the ranks are late by turns",
    )
    uneven: float = limit(
        0.05,
        unit="of the step",
        source="msprof-analyze, RATIO_THRESHOLD of its slow ranks: healthy ranks differ by less",
    )
    host_wait_warn: float = limit(
        0.10, unit="of the step", source="commcheck: a stream that is fed well waits for nobody"
    )
    host_wait_fail: float = limit(0.30, unit="of the step", source="as exposed_fail")
    idle: float = limit(
        0.30,
        unit="of the step",
        source="MindStudio practical cases, Free: below 10 % is usual, above 30 % clearly abnormal",
    )
    latency_share: float = limit(
        0.50,
        unit="of communication",
        source="commcheck: alpha outweighs bytes / beta, so that fewer and larger messages gain",
    )
    many: int = limit(
        16, unit="collectives in a step", source="commcheck: fewer do not add up to a cost"
    )
    gather_share: float = limit(
        0.20,
        unit="of the forward pass",
        source="DeepSpeed ZeRO-3: prefetch is meant to hide the gather under the forward",
    )
    bubble_warn: float = limit(
        0.20,
        unit="of the step",
        source="pipeline parallelism: (p - 1) / m with m = 5 (p - 1) micro batches",
    )
    wire_share: float = limit(
        0.70,
        unit="of the measured busbw",
        source="commcheck: a training job shares its links and moves smaller messages than a sweep",
    )
    wire_bytes: int = limit(
        16_000_000,
        unit="bytes, mean size",
        source="nccl-tests doc/PERFORMANCE.md: smaller messages measure latency, not the wire",
    )
    link_share: float = limit(
        0.70,
        unit="of the median of all ranks",
        source="commcheck: as wire_share; links of one kind differ by some percent",
    )


_EXPOSED: Final = ("exposed_warn", "exposed_fail")
_LAUNCHES: Final = ("host_wait_warn", "host_wait_fail")

DECIDED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "trace-straggler": ("late_share", "late_us", "late_own", "skew_share", "uneven"),
    "trace-input-bound": _LAUNCHES,
    "trace-host-pause": _LAUNCHES,
    "trace-launch-bound": _LAUNCHES,
    "trace-idle": ("idle",),
    "trace-gather-bound": ("gather_share", *_EXPOSED),
    "trace-small-collectives": ("latency_share", "many", *_EXPOSED),
    "trace-not-overlapped": ("overlap", "comm_share", *_EXPOSED),
    "trace-slow-wire": ("wire_share", "wire_bytes", "exposed_fail"),
    "trace-slow-link": ("link_share",),
    "trace-tensor-parallel": _EXPOSED,
    "trace-expert-parallel": _EXPOSED,
    "trace-context-parallel": _EXPOSED,
    "trace-pipeline-bubble": ("bubble_warn",),
    "trace-exposed": _EXPOSED,
}
"""The limits by which each cause is told, the one that its reason quotes first."""

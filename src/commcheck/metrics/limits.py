"""The thresholds by which a job's metrics are judged, each with its unit and source."""

from __future__ import annotations

from commcheck.check import limit
from commcheck.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Where accelerators count as standing still or as computing, and a link as full."""

    compute_low: float = limit(
        0.20,
        unit="of the time, SM or AI core active",
        source="NCCL's own blocks are 8 to 32 of 132 SMs, 0.06 to 0.25 active without any compute",
    )
    sm_high: float = limit(
        0.50,
        unit="of the time, SM active",
        source="NVIDIA DCGM, profiling: less likely indicates ineffective GPU usage",
    )
    link_high: float = limit(
        0.80,
        unit="of the line rate",
        source="nccl-tests doc/PERFORMANCE.md: large all-reduces come to 0.8 to 0.95 of it",
    )
    tensor_low: float = limit(
        0.05,
        unit="of the time, tensor cores active",
        source="own default: training that computes has several times that",
    )
    tensor_high: float = limit(
        0.10, unit="of the time, tensor cores active", source="own default: as tensor_low"
    )
    idle: float = limit(
        0.02, unit="of the time active", source="own default: monitoring itself takes less"
    )
    util_high: float = limit(
        0.50,
        unit="of the time, some kernel running (GPU_UTIL)",
        source="own default: SM active is never exactly 0 then (NVIDIA/dcgm-exporter issue 662)",
    )
    least_min: float = limit(
        5.0, unit="min of training", source="the window of each mean, and of the alerting rule"
    )
    silent_s: float = limit(
        180.0, unit="s without a sample", source="own default: three scrapes by the minute"
    )
    rdma_unused: float = limit(
        0.01, unit="of the line rate", source="own default: only control messages"
    )
    tcp_gbytes: float = limit(
        0.1,
        unit="GB/s both ways over TCP",
        source="own default: no monitoring or log takes as much in both directions",
    )

"""Sizes from which a setting is called small or large, each with its source."""

from __future__ import annotations

from commcheck.check import limit
from commcheck.lazy import dataclass

_LATENCY = (
    "four times latency x bandwidth of 25 us and 40 GB/s, where a message spends a fifth of its "
    "time on latency (nccl-tests doc/PERFORMANCE.md)"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of the rules on sizes."""

    small_mb: float = limit(
        1.0, unit="MiB", source="PyTorch DDP: 1 MiB is its own first bucket, the smallest in use"
    )
    large_mb: float = limit(
        512.0, unit="MiB", source="commcheck: most models of one rank fit into one such bucket"
    )
    small_elements: float = limit(2e6, unit="elements", source=f"{_LATENCY}, in 16 bits")
    large_elements: float = limit(
        1e9, unit="elements", source="DeepSpeed: twice its default, 9 GB with overlap_comm"
    )
    unit_mb: float = limit(
        1e5, unit="MiB", source="100 GB in one bucket: the number is one of bytes or elements"
    )
    unit_elements: float = limit(
        1e4, unit="elements", source="20 kB in a bucket: the number is one of megabytes"
    )
    prefetch: float = limit(
        1e6, unit="elements", source="a fiftieth of DeepSpeed's default stage3_prefetch_bucket_size"
    )
    persistence: float = limit(
        1e4, unit="elements", source="a tenth of DeepSpeed's default; biases and norms are smaller"
    )
    live: float = limit(
        1e8, unit="elements", source="a tenth of DeepSpeed's default stage3_max_live_parameters"
    )
    overlap: float = limit(
        0.5,
        unit="of communication",
        source="PyTorch DDP design (Li et al., VLDB 2020): well over half hides under the backward",
    )

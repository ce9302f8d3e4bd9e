"""What a training step is, and the limits by which its traces are judged."""

from __future__ import annotations

from typing import Final

from commcheck.check import limit
from commcheck.lazy import dataclass
from commcheck.trace import limits as trace

_OWN: Final = "commcheck's own training step"


@dataclass(frozen=True, slots=True)
class StepLimits(trace.Limits):
    """What is trained, beside the limits by which its traces are judged."""

    sharding: str = limit("ddp", unit="ddp or fsdp", source="most jobs are data-parallel")
    device: str = limit(
        "auto", unit="auto, cuda, npu or cpu", source="what the host's platform trains on"
    )
    skip: int = limit(
        10, unit="steps of the site's own training that pass first", source="as commcheck step"
    )
    ranks: int = limit(0, unit="ranks a host, 0: one for each accelerator", source=_OWN)
    steps: int = limit(5, unit="profiled steps", source=_OWN)
    trace_mib: float = limit(
        4.0, unit="MiB of packed trace a rank", source="ten times what five such steps take"
    )
    run_limit_s: float = limit(
        240.0, unit="s for one run", source="torch starts within a minute from a slow file system"
    )


@dataclass(frozen=True, slots=True)
class FleetLimits(StepLimits):
    """Of one training on all hosts: where its ranks meet."""

    port: int = limit(29511, unit="TCP port on the first host", source="torchrun's own is 29500")

"""The driver leaves GPUs between programs."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(
        host,
        gpus=tuple(replace(gpu, care=replace(gpu.care, persistence=False)) for gpu in host.gpus),
    )


FAULT = Fault("persistence mode off", change, "physical.gpu-persistence", status="warn")

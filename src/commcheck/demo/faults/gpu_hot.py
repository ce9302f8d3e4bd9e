"""The sixth GPU is too hot and halves its clocks."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.gpu(
        5,
        lambda gpu: replace(
            gpu, idle_reasons=0x48, load_percent=97, care=replace(gpu.care, temperature_c=92)
        ),
    )


FAULT = Fault("a GPU slowed by heat", change, "physical.gpu-throttle")

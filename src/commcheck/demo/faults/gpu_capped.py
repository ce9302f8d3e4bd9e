"""The third GPU may draw less power than its neighbours."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.gpu(2, lambda gpu: replace(gpu, care=replace(gpu.care, limit_watts=500.0)))


FAULT = Fault("one GPU with a lower power limit", change, "physical.gpu-power-cap")

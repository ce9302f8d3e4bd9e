"""The first GPU lets no program in."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.gpu(0, lambda gpu: replace(gpu, care=replace(gpu.care, compute_mode="Prohibited")))


FAULT = Fault("a GPU that lets no program in", change, "physical.gpu-mode")

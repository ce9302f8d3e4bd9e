"""The second GPU has no spare row of memory left."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.gpu(
        1, lambda gpu: replace(gpu, care=replace(gpu.care, rows_replaced=512, remap_failed=True))
    )


FAULT = Fault("a GPU whose memory cannot be repaired", change, "physical.gpu-row-remap")

"""The last GPU is not registered with the NVLink fabric, its manager has failed."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(
        host.gpu(
            -1, lambda gpu: replace(gpu, care=replace(gpu.care, fabric=("In Progress", "N/A")))
        ),
        upkeep=replace(host.upkeep, fabric_manager="failed"),
    )


FAULT = Fault("NVLink fabric not ready", change, "physical.fabric-manager")

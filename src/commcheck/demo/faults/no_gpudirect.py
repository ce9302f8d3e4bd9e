"""Neither nvidia_peermem is loaded nor can the closed driver export GPU memory as DMA-BUF."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState, without


def change(host: HostState) -> HostState:
    """The facts that differ."""
    modules = without(host.modules, "nvidia_peermem")
    return replace(host, modules=modules, driver_open=False)


FAULT = Fault("no way from NIC to GPU memory", change, "physical.gpudirect")

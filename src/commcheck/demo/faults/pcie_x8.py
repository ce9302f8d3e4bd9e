"""The first NIC trained 8 of 16 PCIe lanes: half of what its port carries."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(0, lambda nic: replace(nic, pcie_width=8))


FAULT = Fault("one NIC on 8 PCIe lanes", change, "physical.pcie-link")

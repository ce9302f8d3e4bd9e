"""The ports of the PCIe switches redirect: GPU to NIC goes through the CPU."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, system=replace(host.system, acs=True))


FAULT = Fault("PCIe switches redirect (ACS)", change, "physical.pcie-acs")

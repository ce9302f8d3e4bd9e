"""The BIOS left the PCIe read requests at 512 bytes."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.every_nic(lambda nic: replace(nic, wire=replace(nic.wire, read_request_bytes=512)))


FAULT = Fault("PCIe read requests of 512 bytes", change, "physical.pcie-mrrs", status="warn")

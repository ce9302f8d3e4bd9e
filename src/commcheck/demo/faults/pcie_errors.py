"""The slot of the first NIC loses transfers."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.counts import Count
from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(
        0,
        lambda nic: replace(
            nic,
            counts=replace(nic.counts, aer_nonfatal=Count(4, 1), aer_correctable=Count(2_210, 40)),
        ),
    )


FAULT = Fault("a NIC's PCIe slot has errors", change, "physical.pcie-errors")

"""The switch port of one rail is described as another host's."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(
        0, lambda nic: replace(nic, wire=replace(nic.wire, described_as="gpu-99:ens1np0"))
    )


FAULT = Fault("cable swapped with another host", change, "physical.rail-switch", status="warn")

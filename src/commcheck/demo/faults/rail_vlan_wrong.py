"""The switch port of the second rail is in another VLAN."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(1, lambda nic: replace(nic, wire=replace(nic.wire, vlan=200)))


FAULT = Fault("the switch port of one rail is in another VLAN", change, "physical.rail-reach")

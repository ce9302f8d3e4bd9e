"""The switch port of the second rail carries no more than 1500 bytes."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(1, lambda nic: replace(nic, wire=replace(nic.wire, path_mtu_bytes=1500)))


FAULT = Fault("the switch port of one rail has an MTU of 1500", change, "physical.rail-reach")

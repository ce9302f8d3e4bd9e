"""The fourth rail has an MTU that is large enough, and another than on all peers."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(3, lambda nic: replace(nic, mtu_bytes=9000))


FAULT = Fault("MTU of one rail unlike its peers", change, "physical.nic-consistency", "warn")

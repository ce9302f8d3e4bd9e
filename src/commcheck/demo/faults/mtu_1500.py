"""The training netdevs fell back to the MTU of an office network."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.every_nic(lambda nic: replace(nic, mtu_bytes=1500))


FAULT = Fault("MTU 1500 on every training netdev", change, "physical.nic-mtu")

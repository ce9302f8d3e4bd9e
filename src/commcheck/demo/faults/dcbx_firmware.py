"""The card's firmware runs DCBX, and the switch may overwrite PFC."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.every_nic(lambda nic: replace(nic, qos=replace(nic.qos, dcbx="firmware")))


FAULT = Fault("DCBX is run by the firmware", change, "physical.dcbx-os")

"""The first NIC was missed in a firmware upgrade."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(0, lambda nic: replace(nic, firmware="28.38.1002"))


FAULT = Fault("one NIC has older firmware than its peers", change, "physical.nic-firmware", "warn")

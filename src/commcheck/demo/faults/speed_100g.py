"""The second rail came up at a quarter of its rate."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(1, lambda nic: replace(nic, speed_mbits=100_000))


FAULT = Fault("one rail at 100 Gb/s", change, "physical.nic-speed")

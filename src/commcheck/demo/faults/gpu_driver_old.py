"""The host was missed in an upgrade of the GPU driver."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, driver="535.183.01")


FAULT = Fault("an older GPU driver than the peers", change, "physical.host-consistency", "warn")

"""The clock is a quarter of a second behind."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, upkeep=replace(host.upkeep, clock_offset_s=-0.248))


FAULT = Fault("clock behind", change, "physical.clock-sync", status="warn")

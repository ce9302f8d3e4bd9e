"""lldpad runs beside static settings, and may overwrite them."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, system=replace(host.system, lldpad=True))


FAULT = Fault("lldpad runs beside static PFC", change, "physical.lldpad-running", status="warn")

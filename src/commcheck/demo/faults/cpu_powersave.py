"""The CPUs save power."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, upkeep=replace(host.upkeep, governor="powersave"))


FAULT = Fault("CPU governor saves power", change, "physical.cpu-governor", status="warn")

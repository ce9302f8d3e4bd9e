"""The fourth and the fifth GPU are not joined by NVLink; all their links are active."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, upkeep=replace(host.upkeep, pair_lost=(3, 4)))


FAULT = Fault("two GPUs without NVLink between them", change, "physical.nvlink-topology")

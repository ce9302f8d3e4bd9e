"""The BIOS does not tell to which NUMA node the GPUs belong."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, upkeep=replace(host.upkeep, numa_told=False))


FAULT = Fault("NUMA nodes of the GPUs not told", change, "physical.numa-affinity", status="warn")

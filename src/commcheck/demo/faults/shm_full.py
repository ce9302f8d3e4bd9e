"""Jobs that crashed left their files in /dev/shm."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, upkeep=replace(host.upkeep, shm_free_kib=12_000))


FAULT = Fault("shared memory full", change, "physical.shm-size")

"""Locked memory is limited to the usual 64 KiB."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, system=replace(host.system, memlock="65536"))


FAULT = Fault("locked memory is limited to 64 KiB", change, "physical.rdma-memlock", status="warn")

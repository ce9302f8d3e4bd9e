"""The tool that reads the RDMA MTU is not installed."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, missing=frozenset({"ibv_devinfo"}))


FAULT = Fault("a tool is not installed", change, "physical.rdma-mtu", "error")

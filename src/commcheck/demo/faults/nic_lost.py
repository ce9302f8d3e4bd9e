"""The last NIC is not on the bus any more."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(-1, lambda nic: replace(nic, present=False))


FAULT = Fault("a NIC is gone", change, "physical.rdma-device-count")

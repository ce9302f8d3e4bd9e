"""RDMA-CM applications begin with RoCE v1."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.every_nic(lambda nic: replace(nic, wire=replace(nic.wire, cma_mode="IB/RoCE v1")))


FAULT = Fault("RDMA-CM defaults to RoCE v1", change, "physical.cma-roce-mode", status="warn")

"""One InfiniBand port came up at a quarter of its rate."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an InfiniBand host."""
    host = become("h200-ib", host, known_personas())
    return host.nic(0, lambda nic: replace(nic, speed_mbits=100_000))


FAULT = Fault("an InfiniBand port at 100 Gb/s", change, "physical.rdma-rate")

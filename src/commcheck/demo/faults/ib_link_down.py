"""An InfiniBand cable is pulled out."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an InfiniBand host."""
    host = become("h200-ib", host, known_personas())
    return host.nic(1, lambda nic: replace(nic, link_up=False))


FAULT = Fault("an InfiniBand link is down (InfiniBand)", change, "physical.rdma-port-active")

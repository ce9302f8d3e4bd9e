"""A rail is cabled into another fabric, which has a manager of its own."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an InfiniBand host."""
    host = become("h200-ib", host, known_personas())
    return host.nic(3, lambda nic: replace(nic, sm_lid=9))


FAULT = Fault(
    "a rail in another fabric (InfiniBand)", change, "physical.ib-consistency", status="warn"
)

"""No subnet manager serves an InfiniBand host: its ports stay in INIT."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an InfiniBand host."""
    host = become("h200-ib", host, known_personas())
    return host.every_nic(lambda nic: replace(nic, lid=0xFFFF, sm_lid=0))


FAULT = Fault("no subnet manager (InfiniBand)", change, "physical.ib-subnet-manager")

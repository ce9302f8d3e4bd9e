"""An InfiniBand host is a limited member of the partition."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an InfiniBand host."""
    host = become("h200-ib", host, known_personas())
    return host.every_nic(lambda nic: replace(nic, wire=replace(nic.wire, pkeys=(0x7FFF,))))


FAULT = Fault("limited member of the partition (InfiniBand)", change, "physical.ib-pkey")

"""An InfiniBand cable damages packets, and the link recovers."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.counts import Count
from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an InfiniBand host."""
    host = become("h200-ib", host, known_personas())
    return host.nic(
        2, lambda nic: replace(nic, counts=replace(nic.counts, ib_receive_errors=Count(12, 3)))
    )


FAULT = Fault("an InfiniBand link has errors (InfiniBand)", change, "physical.ib-counters")

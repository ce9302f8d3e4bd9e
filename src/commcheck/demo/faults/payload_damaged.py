"""A device on the way changes packets of the fourth rail."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.counts import Count
from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(
        3, lambda nic: replace(nic, counts=replace(nic.counts, damaged_payloads=Count(712, 30)))
    )


FAULT = Fault("packets of one rail arrive with changed content", change, "physical.roce-retransmit")

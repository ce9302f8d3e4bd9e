"""Packets of the second rail are lost somewhere in the fabric."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.counts import Count
from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(
        1,
        lambda nic: replace(
            nic,
            counts=replace(nic.counts, out_of_sequence=Count(0, 700), retransmissions=Count(0, 70)),
        ),
    )


FAULT = Fault("packets of one rail are lost in the fabric", change, "physical.roce-retransmit")

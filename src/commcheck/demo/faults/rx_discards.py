"""The second NIC cannot hand its packets on and drops some."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.counts import Count
from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(
        1, lambda nic: replace(nic, counts=replace(nic.counts, discards=Count(5_120, 400)))
    )


FAULT = Fault("one NIC drops received packets", change, "physical.nic-rx-discards")

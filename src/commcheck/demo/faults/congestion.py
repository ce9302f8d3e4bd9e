"""Two flows share one link of the third rail all the time."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.counts import Count
from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(
        2,
        lambda nic: replace(
            nic,
            counts=replace(
                nic.counts,
                ecn_marked=Count(180_331_220, 900_000),
                cnp_handled=Count(77_120_334, 400_000),
            ),
        ),
    )


FAULT = Fault("one rail is congested all the time", change, "physical.roce-congestion", "warn")

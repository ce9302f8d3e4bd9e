"""The host takes the packets of the second rail so slowly that its pauses are cut off."""

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
            counts=replace(
                nic.counts,
                pauses_sent=Count(88_120_331, 20_000),
                pausing_us=Count(71_022_118, 400_000),
                pause_storms=Count(3, 1),
            ),
        ),
    )


FAULT = Fault("one NIC pauses its switch without end", change, "physical.pause-storm")

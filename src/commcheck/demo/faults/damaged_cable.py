"""The cable of the second rail damages packets."""

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
                symbol_errors=Count(1_203, 12),
                crc_errors=Count(411, 5),
                uncorrectable=Count(77_120, 240),
            ),
        ),
    )


FAULT = Fault("packets arrive damaged on one rail", change, "physical.nic-symbol-errors")

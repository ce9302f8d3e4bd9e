"""PFC was switched off: every priority shares one lossy buffer."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    size = 262016, 0, 0, 0, 0, 0, 0, 0
    return host.every_nic(
        lambda nic: replace(
            nic,
            qos=replace(nic.qos, pfc=frozenset(), buffers_bytes=size, prio_buffer=(0,) * 8),
        )
    )


FAULT = Fault("PFC is off on every port", change, "physical.pfc-enabled")

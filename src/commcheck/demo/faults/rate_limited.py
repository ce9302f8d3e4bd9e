"""A rate limit of 100 Gb/s is left over on the class of RoCE."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState
from commcheck.formats.qos import TrafficClass

LIMITED = TrafficClass(3, (3,), "vendor", None, 100.0)


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.every_nic(
        lambda nic: replace(
            nic,
            qos=replace(
                nic.qos,
                traffic_classes=tuple(
                    LIMITED if each.tc == 3 else each for each in nic.qos.traffic_classes or ()
                ),
            ),
        )
    )


FAULT = Fault("RoCE class is limited to 100 Gb/s", change, "physical.qos-ratelimit")

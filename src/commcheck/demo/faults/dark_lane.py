"""One lane of an optical module receives hardly any light."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(
        0, lambda nic: replace(nic, wire=replace(nic.wire, rx_dbm=(0.35, -40.0, 0.18, 0.30)))
    )


FAULT = Fault("a lane of an optic is dark", change, "physical.optics-power")

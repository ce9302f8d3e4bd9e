"""Forward error correction was forced off on one port."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(0, lambda nic: replace(nic, wire=replace(nic.wire, fec="Off")))


FAULT = Fault("FEC is off on one port", change, "physical.nic-fec")

"""Congestion control is off for the RoCE priority: left over from a test."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.every_nic(
        lambda nic: replace(nic, wire=replace(nic.wire, ecn=frozenset(range(8)) - {3}))
    )


FAULT = Fault("ECN is off for RoCE", change, "physical.roce-ecn")

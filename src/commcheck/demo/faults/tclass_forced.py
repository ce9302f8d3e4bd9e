"""The driver forces the traffic class of another fabric."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.every_nic(lambda nic: replace(nic, wire=replace(nic.wire, forced_tclass=160)))


FAULT = Fault("driver forces traffic class 160", change, "physical.roce-tclass")

"""All rails are in one subnet, without a rule for any of them."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, system=replace(host.system, shares_subnet=True))


FAULT = Fault("rails share a subnet without rules", change, "physical.rail-arp")

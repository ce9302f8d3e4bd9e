"""It shows another host key than known_hosts has."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, reach="other-key")


FAULT = Fault("another host key than the known one", change, "physical.reachable", "error")

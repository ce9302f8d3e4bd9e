"""The account does not take our key."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, reach="refuses-key")


FAULT = Fault("our key is refused", change, "physical.reachable", "error")

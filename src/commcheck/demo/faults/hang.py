"""One command never returns, as with a driver that waits for its firmware."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, hanging=(f"ethtool -a {host.nics[0].netdev}",))


FAULT = Fault("a command never returns", change, "physical.pause-global-off", "error")

"""Nothing listens on the port of its sshd."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, reach="down")


FAULT = Fault("nothing listens", change, "physical.reachable", "error")

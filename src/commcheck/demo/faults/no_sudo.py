"""sudo wants a password: what only root may read stays unread."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, sudo=False)


FAULT = Fault("sudo -n is refused", change, "physical.optics-power", "error", blinds_root=True)

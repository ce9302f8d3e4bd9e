"""The cable of the second rail is unplugged."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(1, lambda nic: replace(nic, link_up=False))


FAULT = Fault("no link on one rail", change, "physical.nic-link-up")

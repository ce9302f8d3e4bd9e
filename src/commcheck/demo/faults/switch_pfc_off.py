"""The switch announces that its ports do not protect the RoCE priority."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.every_nic(lambda nic: replace(nic, wire=replace(nic.wire, switch_pfc=frozenset())))


FAULT = Fault("switch has PFC off", change, "physical.switch-pfc")

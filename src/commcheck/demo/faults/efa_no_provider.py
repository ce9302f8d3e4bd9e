"""libfabric cannot open EFA on an AWS host."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    host = become("h100-efa", host, known_personas())
    return host.every_efa(lambda efa: replace(efa, opened=False))


FAULT = Fault("libfabric opens no EFA device (AWS)", change, "physical.efa-devices")

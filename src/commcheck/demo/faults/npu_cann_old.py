"""An Ascend host was left at an older CANN."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.every_npu(lambda npu: replace(npu, cann="8.0.RC2"))


FAULT = Fault("the host has an older CANN (Ascend)", change, "physical.npu-consistency", "warn")

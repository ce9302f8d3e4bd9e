"""An NPU has the gateway of another rail."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.npu(7, lambda npu: replace(npu, gateway="10.20.1.1"))


FAULT = Fault("an NPU has the gateway of another subnet (Ascend)", change, "physical.npu-gateway")

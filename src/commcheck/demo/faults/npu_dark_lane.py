"""A lane of an NPU module receives almost no light."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.npu(0, lambda npu: replace(npu, rx_mw=(1.0189, 0.0054, 0.9911, 1.0312)))


FAULT = Fault("a lane of an NPU module is dark (Ascend)", change, "physical.npu-optics")

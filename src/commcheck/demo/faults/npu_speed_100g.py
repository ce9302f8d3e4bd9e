"""A switch port was split wrongly: an NPU came up at 100 Gb/s."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.npu(4, lambda npu: replace(npu, speed_mbits=100_000))


FAULT = Fault("an NPU runs at 100G (Ascend)", change, "physical.npu-speed")

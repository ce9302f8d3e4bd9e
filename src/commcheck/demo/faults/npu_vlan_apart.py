"""The switch port of an NPU is in a VLAN apart: its link is up, and nobody is reached."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.npu(2, lambda npu: replace(npu, vlan=201))


FAULT = Fault("an NPU's switch port is in a VLAN apart (Ascend)", change, "physical.npu-reach")

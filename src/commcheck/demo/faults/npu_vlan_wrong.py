"""The switch port of an NPU is in another VLAN: its gateway does not answer."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.npu(1, lambda npu: replace(npu, net_health="Unreachable"))


FAULT = Fault("the gateway of an NPU does not answer (Ascend)", change, "physical.npu-net-health")

"""One NPU has another MTU than the others."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.npu(6, lambda npu: replace(npu, mtu_bytes=1500))


FAULT = Fault("an NPU has another MTU (Ascend)", change, "physical.npu-mtu")

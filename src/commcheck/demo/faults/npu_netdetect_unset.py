"""No NPU has an address to ask."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.every_npu(lambda npu: replace(npu, netdetect=None))


FAULT = Fault(
    "the NPUs watch no address (Ascend)", change, "physical.npu-net-health", status="warn"
)

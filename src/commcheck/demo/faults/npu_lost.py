"""An NPU fell off the bus: neither the driver nor PCI shows it."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.npu(2, lambda npu: replace(npu, present=False))


FAULT = Fault("an NPU is lost (Ascend)", change, "physical.npu-count")

"""FEC was switched off on an NPU."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.npu(7, lambda npu: replace(npu, fec="no"))


FAULT = Fault("an NPU has no FEC (Ascend)", change, "physical.npu-fec")

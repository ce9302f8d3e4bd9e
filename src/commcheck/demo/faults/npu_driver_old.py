"""One host kept the NPU driver of the last release."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.every_npu(lambda npu: replace(npu, driver="24.1.rc2"))


FAULT = Fault(
    "an older NPU driver on one host (Ascend)", change, "physical.npu-consistency", status="warn"
)

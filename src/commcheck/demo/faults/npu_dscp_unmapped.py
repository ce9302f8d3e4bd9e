"""One NPU was not told where DSCP 33 belongs."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.npu(6, lambda npu: replace(npu, dscp_tc=()))


FAULT = Fault(
    "an NPU sorts DSCP 33 otherwise (Ascend)", change, "physical.npu-dscp-map", status="warn"
)

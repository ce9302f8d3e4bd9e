"""The link of an NPU was lost twice within the last hour."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.npu(
        5,
        lambda npu: replace(
            npu, changes=((616, "UP"), (618, "DOWN"), (1617, "UP"), (1620, "DOWN"), (90_000, "UP"))
        ),
    )


FAULT = Fault("the link of an NPU flaps (Ascend)", change, "physical.npu-link-flaps")

"""The fibre of one NPU is pulled out."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.npu(5, lambda npu: replace(npu, link_up=False, rx_mw=(0.0, 0.0, 0.0, 0.0)))


FAULT = Fault("the link of an NPU is down (Ascend)", change, "physical.npu-link-up")

"""The RoCE ports of an A3 host are not cabled: it reaches its superpod over HCCS alone."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an A3."""
    host = become("ascend-910c", host, known_personas())
    return host.every_npu(lambda npu: replace(npu, link_up=False, switch=""))


FAULT = Fault(
    "RoCE ports of an A3 are not cabled, HCCS works (Ascend)",
    change,
    "physical.npu-link-up",
    "warn",
)

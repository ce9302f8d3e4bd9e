"""PFC is on for 3, as GPU fabrics have it, and HCCL uses 4."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.every_npu(lambda npu: replace(npu, pfc=frozenset({3})))


FAULT = Fault("PFC of the NPUs is on for 3 (Ascend)", change, "physical.npu-pfc")

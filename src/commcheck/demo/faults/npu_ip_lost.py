"""The addresses of the NPUs were not restored after a restart."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.npu(
        3, lambda npu: replace(npu, address=None, kept_address=f"10.20.4.{host.number + 10}")
    )


FAULT = Fault("an NPU has no address (Ascend)", change, "physical.npu-ip")

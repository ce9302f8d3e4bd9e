"""Half the fleet was installed anew: this host has TLS on."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.every_npu(lambda npu: replace(npu, tls=1))


FAULT = Fault("TLS is on on one host (Ascend)", change, "physical.npu-tls-consistent")

"""A VPI card of an InfiniBand host was left in Ethernet mode."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an InfiniBand host whose inventory says that it is one."""
    host = become("h200-ib", host, known_personas())
    host = replace(host, declared=(*host.declared, ("commcheck_platform", "gpu-ib")))
    return host.nic(0, lambda nic: replace(nic, link_layer="Ethernet"))


FAULT = Fault("a port in Ethernet mode (InfiniBand)", change, "physical.nic-link-type")

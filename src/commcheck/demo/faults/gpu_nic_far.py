"""One NIC sits in a slot on the CPU, and no other is beside its GPUs."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(0, lambda nic: replace(nic, root="pci0000:c0/0000:c0:01.0/0000:c1:00.0"))


FAULT = Fault("a NIC is in the wrong slot", change, "physical.gpu-nic-affinity")

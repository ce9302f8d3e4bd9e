"""The IOMMU translates every device's addresses: the kernel's default."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, system=replace(host.system, iommu="DMA-FQ"))


FAULT = Fault("IOMMU translates NICs and GPUs", change, "physical.iommu-mode", status="warn")

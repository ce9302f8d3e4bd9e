"""Google's a3 instances: eight H100 and a network of TCP, without any RDMA device."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.facts import Job
from commcheck.demo.persona import Persona
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(
        host,
        product="Google Compute Engine",
        is_guest=True,
        system=replace(host.system, iommu="DMA"),
        nics=(),
        job=Job(variables=(("NCCL_NET", "Socket"), ("NCCL_DEBUG", "WARN"))),
        modules=tuple(each for each in host.modules if not each.name.startswith("mlx5")),
    )


PERSONA = Persona("H100, TCP without RDMA (Google a3)", change, {"commcheck_platform": "gpu-tcp"})

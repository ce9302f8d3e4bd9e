"""AWS p5 instances: eight H100 and 32 EFA devices, four beside each GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from commcheck.demo.efa import EfaState
from commcheck.demo.facts import Job
from commcheck.demo.persona import Persona
from commcheck.demo.state import HostState

_PER_GPU = 4


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(
        host,
        product="p5.48xlarge",
        is_guest=True,
        system=replace(host.system, iommu="DMA"),
        nics=(),
        job=Job(variables=(("FI_PROVIDER", "efa"), ("NCCL_DEBUG", "WARN"))),
        efas=tuple(_devices(host)),
        modules=tuple(
            replace(
                module,
                name=module.name.replace("mlx5_ib", "efa"),
                users=tuple(user.replace("mlx5_ib", "efa") for user in module.users),
            )
            for module in host.modules
            if module.name != "mlx5_core"
        ),
    )


def _devices(host: HostState) -> Iterator[EfaState]:
    """Below the switch that each rail's NIC shares with its GPUs."""
    for nic in host.nics:
        beside = sum(gpu.root == nic.root for gpu in host.gpus)
        bus = nic.pci[5:7]
        for slot in range(beside * _PER_GPU):
            name = f"rdmap{int(bus, 16)}s{slot}"
            yield EfaState(name, nic.root, nic.bridge, f"0000:{bus}:{slot:02x}.0")


PERSONA = Persona("H100, 32 EFA devices of 100 Gb/s (AWS p5)", change, {"commcheck_efa_count": 32})

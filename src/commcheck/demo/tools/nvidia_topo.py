"""``nvidia-smi topo -m``: how close GPUs and NICs are, by the bridges that they share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import GpuState, HostState, NicState

TOOLS: Final = ("nvidia-smi",)

_LEGEND: Final = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

"""


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Where a GPU is lost, the tool gives up before."""
    if host.gpus and not any(gpu.lost for gpu in host.gpus):
        yield Answer(("nvidia-smi", "topo", "-m"), topology(host))


def topology(host: HostState) -> str:
    """The matrix and its legends, of drivers from 510 on."""
    nics = [nic for nic in host.nics if nic.present]
    devices: list[tuple[str, GpuState | NicState]] = [
        *((f"GPU{n}", gpu) for n, gpu in enumerate(host.gpus)),
        *((f"NIC{n}", nic) for n, nic in enumerate(nics)),
    ]
    names = "\t".join(name for name, _ in devices)
    place = "0-47,96-143\t0" if host.upkeep.numa_told else "0-191\tN/A"
    pair = {host.gpus[at].pci for at in host.upkeep.pair_lost or ()}
    lines = [f"\t{names}\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID"]
    for name, one in devices:
        row = "\t".join(
            "SYS" if {one.pci, other.pci} == pair else _way(one, other) for _, other in devices
        )
        end = f"\t{place}\t\tN/A" if isinstance(one, GpuState) else "\t\t\t\t"
        lines.append(f"{name}\t{row}{end}")
    named = "".join(f"  NIC{n}: {nic.hca}\n" for n, nic in enumerate(nics))
    return "".join(f"{line}\n" for line in lines) + f"{_LEGEND}{named}\n"


def _way(one: GpuState | NicState, other: GpuState | NicState) -> str:
    if one is other:
        return " X "
    if isinstance(one, GpuState) and isinstance(other, GpuState):
        links = min(len(one.links_gbytes), len(other.links_gbytes))
        return f"NV{links}" if links else "NODE"
    return "PXB" if one.root == other.root else "NODE"

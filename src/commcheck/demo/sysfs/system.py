"""The IOMMU's groups, IPv4 settings of the netdevs, and the session's limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from commcheck.demo.parts import Entries, File, Link
from commcheck.demo.state import HostState
from commcheck.demo.sysfs.gpu import pci_folder as gpu_folder
from commcheck.demo.sysfs.nic import pci_folder as nic_folder

_LIMITS: Final = (
    ("Limit", "Soft Limit", "Hard Limit", "Units"),
    ("Max cpu time", "unlimited", "unlimited", "seconds"),
    ("Max processes", "2061418", "2061418", "processes"),
    ("Max open files", "1048576", "1048576", "files"),
)


def entries(host: HostState) -> Entries:
    """All of them."""
    yield from iommu(host)
    yield from ipv4(host)
    memlock = host.system.memlock
    rows = (*_LIMITS, ("Max locked memory", memlock, memlock, "bytes"))
    yield File("proc/self/limits", "".join(map(_limit, rows)))


def _limit(row: tuple[str, str, str, str]) -> str:
    name, soft, hard, unit = row
    return f"{name:<25} {soft:<20} {hard:<20} {unit:<10}\n"


def iommu(host: HostState) -> Entries:
    """A group for each NIC and GPU."""
    for group, (pci, folder) in enumerate(_devices(host)):
        place = f"sys/kernel/iommu_groups/{group}"
        yield File(f"{place}/type", f"{host.system.iommu}\n")
        yield Link(f"{place}/devices/{pci}", folder)


def _devices(host: HostState) -> Iterator[tuple[str, str]]:
    for nic in host.nics:
        if nic.present:
            yield nic.pci, nic_folder(nic)
    for gpu in host.gpus:
        yield gpu.pci, gpu_folder(gpu)


def ipv4(host: HostState) -> Entries:
    """The kernel's defaults."""
    for netdev in ("all", "default", "lo", *(nic.netdev for nic in host.nics if nic.present)):
        for name in ("arp_announce", "arp_ignore", "rp_filter"):
            yield File(f"proc/sys/net/ipv4/conf/{netdev}/{name}", "0\n")

"""The parts of /sys and /proc of a simulated host that commcheck looks at, from its state. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Final

from commcheck.demo.state import GpuState, HostState, NicState
from commcheck.demo.tools import proc_modules

Files = Iterator[tuple[str, str]]
"""Path from the root (``sys/class/...``) and text."""

_DRIVER: Final = "mlx5_core"


def files(host: HostState) -> Files:
    """Every file with its text."""
    yield from _proc(host)
    yield "sys/class/dmi/id/sys_vendor", "Simulated\n"
    yield "sys/class/dmi/id/product_name", "HGX H100\n"
    for nic in host.nics:
        if nic.present:
            yield from _nic(nic)
    for gpu in host.gpus:
        yield from _gpu(gpu)


def links(host: HostState) -> Iterator[tuple[str, str]]:
    """Every symbolic link: its path, and what it leads to, from where it stands."""
    for nic in host.nics:
        if nic.present:
            device = nic_device(nic)
            infiniband, net = f"{device}/infiniband/{nic.hca}", f"{device}/net/{nic.netdev}"
            yield _link(f"{device}/driver", f"sys/bus/pci/drivers/{_DRIVER}")
            yield _link(f"{infiniband}/device", device)
            yield _link(f"{net}/device", device)
            yield _link(f"sys/class/infiniband/{nic.hca}", infiniband)
            yield _link(f"sys/class/net/{nic.netdev}", net)
            yield _link(f"sys/bus/pci/devices/{nic.pci}", device)
    for gpu in host.gpus:
        yield _link(f"sys/bus/pci/devices/{gpu.pci}", gpu_device(gpu))


def _link(path: str, target: str) -> tuple[str, str]:
    return path, posixpath.relpath(target, posixpath.dirname(path))


def nic_device(nic: NicState) -> str:
    """The folder of the NIC's PCI device, below the bridges that lead to it."""
    return f"sys/devices/{nic.root}/{nic.bridge}/{nic.pci}"


def gpu_device(gpu: GpuState) -> str:
    """The folder of the GPU's PCI device."""
    return f"sys/devices/{gpu.root}/{gpu.bridge}/{gpu.pci}"


# --- /proc --------------------------------------------------------------------------------------


def _proc(host: HostState) -> Files:
    yield "proc/sys/kernel/hostname", f"{host.name}\n"
    yield "proc/sys/kernel/ostype", "Linux\n"
    yield "proc/sys/kernel/osrelease", f"{host.kernel}\n"
    boot = f"00000000-0000-4000-8000-{host.number:012d}\n"
    yield "proc/sys/kernel/random/boot_id", boot
    yield "proc/uptime", "864000.00 0.00\n"
    # No "hypervisor" among the flags: bare metal.
    yield "proc/cpuinfo", "processor\t: 0\nmodel name\t: Simulated CPU\nflags\t\t: fpu sse2 avx2\n"
    yield "proc/modules", proc_modules(host.modules)
    yield "proc/driver/nvidia/version", nvidia_version(host)
    yield (
        "proc/net/route",
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
        "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n",
    )
    for gpu in host.gpus:
        if not gpu.lost:
            yield f"proc/driver/nvidia/gpus/{gpu.pci}/information", f"Model: \t\t {gpu.name}\n"


_FLAVOURS: Final = {
    True: "Open Kernel Module for x86_64  {}  Release Build  (dvs-builder@U16-I3-A15-4-3)"
    "  Tue Mar  5 22:09:14 UTC 2024",
    False: "x86_64 Kernel Module  {}  Sat Feb 24 22:24:55 UTC 2024",
}


def nvidia_version(host: HostState) -> str:
    """``/proc/driver/nvidia/version``."""
    return (
        f"NVRM version: NVIDIA UNIX {_FLAVOURS[host.driver_open].format(host.driver)}\n"
        "GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04) \n"
    )


# --- /sys ---------------------------------------------------------------------------------------


def rate(nic: NicState) -> str:
    """The port's rate as the RDMA core names it: per lane, and how many of them."""
    if not nic.link_up:
        return "40 Gb/sec (4X QDR)"
    gbits = nic.speed_mbits // 1000
    signal = {400: "NDR", 200: "HDR", 100: "EDR", 40: "QDR"}.get(gbits, "EDR")
    return f"{gbits} Gb/sec (4X {signal})"


def _nic(nic: NicState) -> Files:
    device = nic_device(nic)
    yield f"{device}/vendor", "0x15b3\n"
    yield f"{device}/class", "0x020000\n"
    yield f"{device}/current_link_speed", f"{nic.pcie_gts:.1f} GT/s PCIe\n"
    yield f"{device}/current_link_width", f"{nic.pcie_width}\n"
    yield f"{device}/max_link_speed", f"{nic.pcie_max_gts:.1f} GT/s PCIe\n"
    yield f"{device}/max_link_width", f"{nic.pcie_max_width}\n"
    slot = posixpath.dirname(device)
    yield f"{slot}/max_link_speed", f"{nic.pcie_max_gts:.1f} GT/s PCIe\n"
    yield f"{slot}/max_link_width", f"{nic.pcie_max_width}\n"
    yield f"sys/bus/pci/drivers/{_DRIVER}/module/version", "24.10-1.1.4\n"
    port = f"{device}/infiniband/{nic.hca}/ports/1"
    yield f"{port}/link_layer", f"{nic.link_layer}\n"
    yield f"{port}/state", "4: ACTIVE\n" if nic.link_up else "1: DOWN\n"
    yield f"{port}/phys_state", "5: LinkUp\n" if nic.link_up else "3: Disabled\n"
    yield f"{port}/rate", f"{rate(nic)}\n"
    for gid in nic.gids:
        kind = "IB/RoCE v1" if gid.roce_version == 1 else "RoCE v2"
        yield f"{port}/gids/{gid.index}", f"{gid.gid}\n"
        yield f"{port}/gid_attrs/types/{gid.index}", f"{kind}\n"
        yield f"{port}/gid_attrs/ndevs/{gid.index}", f"{gid.netdev}\n"
    net = f"{device}/net/{nic.netdev}"
    yield f"{net}/mtu", f"{nic.mtu_bytes}\n"
    yield f"{net}/operstate", "up\n" if nic.link_up else "down\n"
    yield f"{net}/carrier", f"{int(nic.link_up)}\n"
    yield f"{net}/speed", f"{nic.speed_mbits if nic.link_up else -1}\n"
    yield f"{net}/dev_port", "0\n"


def _gpu(gpu: GpuState) -> Files:
    device = gpu_device(gpu)
    yield f"{device}/vendor", "0x10de\n"
    yield f"{device}/class", "0x030200\n"

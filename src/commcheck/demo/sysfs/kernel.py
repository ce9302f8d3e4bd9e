"""/proc, and what /sys tells of the machine as a whole."""

from __future__ import annotations

from typing import Final

from commcheck.demo.parts import Entries, File
from commcheck.demo.state import HostState, ModuleState


def entries(host: HostState) -> Entries:
    """The kernel, its modules and drivers, the way to the default gateway."""
    yield File("proc/sys/kernel/hostname", f"{host.name}\n")
    yield File("proc/sys/kernel/ostype", "Linux\n")
    yield File("proc/sys/kernel/osrelease", f"{host.kernel}\n")
    boot = f"00000000-0000-4000-8000-{host.number:012d}\n"
    yield File("proc/sys/kernel/random/boot_id", boot)
    yield File("etc/machine-id", f"{host.number:032x}\n")
    for each in host.running:
        ids = "\t".join([str(each.uid)] * 4)
        yield File(f"proc/{each.pid}/status", f"Name:\t{each.name}\nUid:\t{ids}\n")
    yield File("proc/uptime", "864000.00 0.00\n")
    # The login is no root, whoever runs the fleet.
    yield File("proc/self/status", "Name:\tsh\nUid:\t1000\t1000\t1000\t1000\n")
    # On bare metal there is no such flag.
    guest = " hypervisor" if host.is_guest else ""
    cpu = f"processor\t: 0\nmodel name\t: Simulated CPU\nflags\t\t: fpu sse2{guest} avx2\n"
    yield File("proc/cpuinfo", cpu)
    yield File("proc/modules", modules(host.modules))
    yield File("proc/driver/nvidia/version", nvidia_version(host))
    yield File(
        "proc/net/route",
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
        "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n",
    )
    yield File("sys/class/dmi/id/sys_vendor", "Simulated\n")
    yield File("sys/class/dmi/id/product_name", f"{host.product}\n")


def modules(loaded: tuple[ModuleState, ...]) -> str:
    """``/proc/modules``: as the kernel lists them, users with a comma behind each."""
    return "".join(
        f"{each.name} {each.size} {each.uses} "
        f"{''.join(f'{user},' for user in each.users) or '-'} Live 0x0000000000000000\n"
        for each in loaded
    )


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

"""The CPUs' governors, the NUMA nodes and the NVSwitches."""

from __future__ import annotations

from typing import Final

from commcheck.demo.parts import Entries, File
from commcheck.demo.state import HostState

_CPUS: Final = 2
_SWITCHES: Final = ("0000:05:00.0", "0000:06:00.0", "0000:07:00.0", "0000:08:00.0")


def entries(host: HostState) -> Entries:
    """Of Blackwell's baseboards the NVSwitches are not on PCI."""
    for cpu in range(_CPUS):
        place = f"sys/devices/system/cpu/cpufreq/policy{cpu}"
        yield File(f"{place}/scaling_governor", f"{host.upkeep.governor}\n")
    yield File("sys/devices/system/node/online", "0-1\n")
    if not any("B200" in gpu.name for gpu in host.gpus):
        for switch in _SWITCHES:
            yield File(f"proc/driver/nvidia-nvswitch/devices/{switch}", "Device Instance: 0\n")

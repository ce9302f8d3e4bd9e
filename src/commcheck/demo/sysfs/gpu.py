"""The GPUs in /sys and /proc: the PCI device, and the driver's folder while it can talk to it."""

from __future__ import annotations

from commcheck.demo.parts import Entries, File, Link
from commcheck.demo.state import GpuState, HostState


def entries(host: HostState) -> Entries:
    """Of every GPU."""
    for gpu in host.gpus:
        device = pci_folder(gpu)
        yield File(f"{device}/vendor", "0x10de\n")
        yield File(f"{device}/class", "0x030200\n")
        yield Link(f"sys/bus/pci/devices/{gpu.pci}", device)
        if not gpu.lost:
            about = f"Model: \t\t {gpu.name}\n"
            yield File(f"proc/driver/nvidia/gpus/{gpu.pci}/information", about)


def pci_folder(gpu: GpuState) -> str:
    """The folder of the GPU's PCI device."""
    return f"sys/devices/{gpu.root}/{gpu.bridge}/{gpu.pci}"

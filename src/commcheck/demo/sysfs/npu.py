"""The NPUs in /sys and /dev, the file that keeps their network settings, and what is installed."""

from __future__ import annotations

from commcheck.demo.npu import NpuState
from commcheck.demo.parts import Entries, File, Link
from commcheck.demo.state import HostState


def entries(host: HostState) -> Entries:
    """Of every NPU that is there."""
    for npu in host.npus:
        if npu.present:
            device = f"sys/devices/pci0000:{npu.pci[5:7]}/{npu.pci}"
            yield File(f"{device}/vendor", "0x19e5\n")
            yield File(f"{device}/class", "0x120000\n")
            yield Link(f"sys/bus/pci/devices/{npu.pci}", device)
            yield File(f"dev/davinci{npu.number}", "")
    for npu in host.npus[:1]:
        yield from releases(npu)
    if host.npus and host.hccn_conf:
        yield File("etc/hccn.conf", "".join(map(kept, host.npus)))


def releases(npu: NpuState) -> Entries:
    """What the installers of CANN and of the firmware leave."""
    place = "usr/local/Ascend"
    yield File(
        f"{place}/ascend-toolkit/latest/aarch64-linux/ascend_toolkit_install.info",
        f"package_name=Ascend-cann-toolkit\nversion={npu.cann}\narch=aarch64\nos=linux\n",
    )
    yield File(f"{place}/firmware/version.info", f"Version={npu.firmware}\nfirmware_version=1.0\n")


def kept(npu: NpuState) -> str:
    """The lines of one NPU in /etc/hccn.conf."""
    values = {
        "address": npu.kept,
        "netmask": npu.netmask,
        "netdetect": npu.asked,
        "gateway": npu.gateway,
    }
    return "".join(f"{key}_{npu.number}={value}\n" for key, value in values.items() if value)

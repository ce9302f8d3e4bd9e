"""The NICs in /sys: PCI device, RDMA port and netdev of each, and the links between them."""

from __future__ import annotations

import posixpath
from typing import Final

from commcheck.demo.parts import Entries, File, Link
from commcheck.demo.state import HostState, NicState, port_state

_VENDORS: Final = {"mlx5_core": "0x15b3", "bnxt_en": "0x14e4"}
"""PCI vendor of the cards of each driver."""


VF_ID: Final = 0x101E
"""PCI device id of any virtual function of a ConnectX-6 Dx or newer."""


def entries(host: HostState) -> Entries:
    """Of every NIC that is on the bus."""
    for nic in host.nics:
        if nic.present:
            yield from files(nic, host.kernel)
            yield from links(nic)


def pci_folder(nic: NicState) -> str:
    """The folder of the NIC's PCI device, below the bridges that lead to it."""
    return f"sys/devices/{nic.root}/{nic.bridge}/{nic.pci}"


def port_folder(nic: NicState) -> str:
    """The folder of the NIC's RDMA port."""
    return f"{pci_folder(nic)}/infiniband/{nic.hca}/ports/1"


def net_folder(port: NicState) -> str:
    """The folder of a physical port's netdev."""
    return f"{pci_folder(port)}/net/{port.netdev}"


def _bond_folder(nic: NicState) -> str:
    return f"sys/devices/virtual/net/{nic.netdev}"


def links(nic: NicState) -> Entries:
    """From the device to its driver, and from the classes and the bus to the device."""
    device = pci_folder(nic)
    infiniband = f"{device}/infiniband/{nic.hca}"
    yield Link(f"{device}/driver", f"sys/bus/pci/drivers/{nic.driver}")
    yield Link(f"{infiniband}/device", device)
    yield Link(f"sys/class/infiniband/{nic.hca}", infiniband)
    yield Link(f"sys/bus/pci/devices/{nic.pci}", device)
    for port in nic.ports:
        net = net_folder(port)
        yield Link(f"{net}/device", pci_folder(port))
        yield Link(f"sys/class/net/{port.netdev}", net)
        if nic.members:
            yield Link(f"{_bond_folder(nic)}/lower_{port.netdev}", net)
    if nic.members:
        yield Link(f"sys/class/net/{nic.netdev}", _bond_folder(nic))


def rate(nic: NicState) -> str:
    """The port's rate as the RDMA core names it: per lane, and how many of them."""
    if not nic.link_up:
        return "40 Gb/sec (4X QDR)"
    gbits = nic.speed_mbits // 1000
    signal = {800: "XDR", 400: "NDR", 200: "HDR", 100: "EDR", 40: "QDR"}.get(gbits, "EDR")
    return f"{gbits} Gb/sec (4X {signal})"


_PLAIN_SPEEDS_UNTIL: Final = (5, 8)
"""The last kernel that shows a PCIe speed as "8 GT/s", not as "8.0 GT/s PCIe"."""


def pcie_speed(gts: float, kernel: str) -> str:
    """A PCIe speed in GT/s as this kernel says it."""
    major, minor = kernel.split(".")[:2]
    return (
        f"{gts:g} GT/s"
        if (int(major), int(minor)) <= _PLAIN_SPEEDS_UNTIL
        else f"{gts:.1f} GT/s PCIe"
    )


def files(nic: NicState, kernel: str) -> Entries:
    """The PCI device, the RDMA port and the netdev."""
    device = pci_folder(nic)
    yield File(f"{device}/vendor", f"{_VENDORS[nic.driver]}\n")
    yield File(f"{device}/device", f"0x{VF_ID if nic.is_vf else nic.part_id:04x}\n")
    is_ethernet = nic.link_layer == "Ethernet"
    yield File(f"{device}/class", "0x020000\n" if is_ethernet else "0x020700\n")
    yield File(f"{device}/current_link_speed", f"{pcie_speed(nic.pcie_gts, kernel)}\n")
    yield File(f"{device}/current_link_width", f"{nic.pcie_width}\n")
    yield File(f"{device}/max_link_speed", f"{pcie_speed(nic.pcie_max_gts, kernel)}\n")
    yield File(f"{device}/max_link_width", f"{nic.pcie_max_width}\n")
    slot = posixpath.dirname(device)
    yield File(f"{slot}/max_link_speed", f"{pcie_speed(nic.pcie_max_gts, kernel)}\n")
    yield File(f"{slot}/max_link_width", f"{nic.pcie_max_width}\n")
    yield File(f"sys/bus/pci/drivers/{nic.driver}/module/version", f"{nic.driver_version}\n")
    port = port_folder(nic)
    yield File(f"{port}/link_layer", f"{nic.link_layer}\n")
    code, state = port_state(nic)
    yield File(f"{port}/state", f"{code}: {state}\n")
    yield File(f"{port}/phys_state", "5: LinkUp\n" if nic.link_up else "3: Disabled\n")
    yield File(f"{port}/rate", f"{rate(nic)}\n")
    for gid in nic.gids:
        kind = "IB/RoCE v1" if gid.roce_version == 1 else "RoCE v2"
        yield File(f"{port}/gids/{gid.index}", f"{gid.gid}\n")
        yield File(f"{port}/gid_attrs/types/{gid.index}", f"{kind}\n")
        if gid.netdev:
            yield File(f"{port}/gid_attrs/ndevs/{gid.index}", f"{gid.netdev}\n")
    for each in nic.ports:
        yield from _netdev(each)
    if nic.members:
        yield File(f"{_bond_folder(nic)}/mtu", f"{nic.mtu_bytes}\n")


def _netdev(port: NicState) -> Entries:
    net = net_folder(port)
    yield File(f"{net}/mtu", f"{port.mtu_bytes}\n")
    yield File(f"{net}/operstate", "up\n" if port.link_up else "down\n")
    yield File(f"{net}/carrier", f"{int(port.link_up)}\n")
    yield File(f"{net}/speed", f"{port.speed_mbits if port.link_up else -1}\n")
    yield File(f"{net}/dev_port", "0\n")

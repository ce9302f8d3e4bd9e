"""The runner's first frame, sorted by what its lines are about. Pure.

The frame is lines ``key value``, written by ``collect/runner.sh``. Names in it come from the
host, so they are facts and never trusted: what is put into a command is checked again there.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Final

from commcheck.command import PLACE, whole_number
from commcheck.lazy import dataclass, regex

VENDORS: Final = {"0x10de": "nvidia", "0x19e5": "ascend"}
"""PCI vendor ids of accelerators."""

VF_IDS: Final = {
    "mlx5_core": {0x1014, 0x1016, 0x1018, 0x101A, 0x101C, 0x101E, 0xA2D3},
    "bnxt_en": {
        *(0x1606, 0x1607, 0x1608, 0x1609, 0x16BD, 0x16C1, 0x16C2, 0x16C3, 0x16C4, 0x16C5, 0x16CB),
        *(0x16D3, 0x16DC, 0x16E1, 0x16E5, 0x16E6, 0x1806, 0x1807, 0x1808, 0x1809, 0x1819, 0x181B),
    },
    "ionic": {0x1003},
}
"""PCI device ids of virtual functions, by driver: a guest is not shown whose function it has.

Sources: pci.ids, and the device table of Linux drivers/net/ethernet/broadcom/bnxt.
"""

VF_DRIVERS: Final = frozenset({"erdma", "iavf", "mana"})
"""Drivers of virtual functions only: Alibaba's eRDMA, Intel's VFs (irdma), Azure's MANA.

Sources: the device tables of Linux drivers/infiniband/hw/erdma, drivers/net/ethernet/intel/iavf and
microsoft/mana. The port behind them is the provider's.
"""

_SMALL: Final = regex(r"\d{1,3}")
BDF: Final = regex(r"[0-9a-fA-F]{4,}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
"""A PCI address: domain, bus, device and function."""


def last_bdf(path: str) -> str | None:
    """The address that a PCI path ends with."""
    found = BDF.findall(path)
    return found[-1].lower() if found else None


@dataclass(slots=True)
class Port:
    """One RDMA port as the frame tells it."""

    hca: str
    number: int
    path: str = ""
    driver: str | None = None
    link_layer: str | None = None
    state: str | None = None
    phys_state: str | None = None
    netdev: str | None = None
    nets: list[tuple[str, str]] = field(default_factory=list)  # (netdev, dev_port)
    physfn: str | None = None  # PCI address of the physical function, for a virtual one
    pci_id: int | None = None  # device id of the card's vendor
    is_soft: bool = False  # rxe or siw: RDMA in software over any NIC
    is_nvswitch: bool = False  # the bridge by which the host manages its NVSwitches, no NIC

    @property
    def pci(self) -> str | None:
        return last_bdf(self.path)

    @property
    def is_vf(self) -> bool:
        """A virtual function, or a sub-function: what belongs to the port is not shown to it."""
        return (
            self.physfn is not None
            or self.driver in VF_DRIVERS
            or ".sf." in self.path.rpartition("/")[2]
            or self.pci_id in VF_IDS.get(self.driver or "", ())
        )

    @property
    def card(self) -> str:
        """The card: its PCI address without the function."""
        return (self.pci or self.hca).partition(".")[0]

    def device(self) -> str | None:
        """Its netdev: that of GID 0, else the one whose dev_port is this port."""
        if self.netdev:
            return self.netdev
        numbered = [name for name, dev_port in self.nets if dev_port == str(self.number - 1)]
        names = numbered or [name for name, _ in self.nets]
        return names[0] if len(names) == 1 else None


@dataclass(slots=True)
class Told:
    """The frame, sorted by what its lines are about."""

    facts: dict[str, str] = field(default_factory=dict)
    container: bool = False
    ports: list[Port] = field(default_factory=list)
    accelerators: list[tuple[str, str]] = field(default_factory=list)  # (vendor, PCI path)
    for_guests: set[str] = field(default_factory=set)  # PCI addresses that vfio-pci holds
    # PCI addresses that the driver knows, and which device file is whose: N of /dev/nvidiaN.
    gpus: dict[str, int | None] = field(default_factory=dict)
    gpu_files: set[int] = field(default_factory=set)
    npus: list[int] = field(default_factory=list)  # chip ids that the driver knows
    default_nets: set[str] = field(default_factory=set)
    nets: list[tuple[str, str]] = field(default_factory=list)  # (netdev, address) behind it
    routes: list[tuple[str, ipaddress.IPv4Network]] = field(default_factory=list)
    lowers: list[tuple[str, str]] = field(default_factory=list)  # (bond or bridge, member)
    net_paths: dict[str, str] = field(default_factory=dict)  # PCI path of a member


def read(text: str) -> Told:
    """The frame. A line that is not understood is kept as a fact, and never an error."""
    told = Told()
    # Not splitlines: it also splits at bytes that a host name may hold.
    for line in text.split("\n"):
        key, _, value = line.partition(" ")
        words = value.split()
        if not words:
            continue
        match key:
            case "port" if len(words) == 2 and (port := whole_number(words[1])) is not None:
                told.ports.append(Port(_hca(words[0], told.ports), port))
            case "accelerator" if len(words) in (2, 3) and words[0] in VENDORS:
                told.accelerators.append((VENDORS[words[0]], words[1]))
                if len(words) == 3 and (held := last_bdf(words[1])):
                    told.for_guests.add(held)
            case "gpu":
                number = words[1] if len(words) == 2 and _SMALL.fullmatch(words[1]) else None
                told.gpus[words[0].lower()] = None if number is None else int(number)
            case "gpu_file" if _SMALL.fullmatch(words[0]):
                told.gpu_files.add(int(words[0]))
            case "npu" if re.fullmatch(r"\d{1,2}", words[0]):
                told.npus.append(int(words[0]))
            case "default":
                told.default_nets.add(words[0])
            case "net4" if len(words) == 3:
                told.routes.extend(_route(*words))
            case "net6" if len(words) == 2:
                told.nets.append((words[0], words[1]))
            case "lower" if len(words) in (2, 3):
                told.lowers.append((words[0], words[1]))
                told.net_paths[words[1]] = words[-1]
            case "container":
                told.container = True
            case _ if told.ports and _of_port(told.ports[-1], key, words):
                pass
            case _:
                told.facts.setdefault(key, value.strip())
    return told


def _hca(name: str, ports: Sequence[Port]) -> str:
    """The HCA's name, or one for the report alone: no command takes a name with "?"."""
    return name if PLACE.fullmatch(name) else f"?{len(ports)}"


def _of_port(port: Port, key: str, words: Sequence[str]) -> bool:
    """Take a line that belongs to the port named last; False: it is none of a port's."""
    match key:
        case "path":
            port.path = words[0]
        case "driver":
            port.driver = words[0]
        case "link_layer":
            port.link_layer = words[0]
        case "state" | "phys_state":
            # "4: ACTIVE", "5: LinkUp"; the number is the same in every kernel, the word is shown.
            setattr(port, key, words[-1])
        case "netdev":
            port.netdev = words[0]
        case "net":
            port.nets.append((words[0], words[1] if len(words) > 1 else ""))
        case "physfn":
            port.physfn = words[0].lower()
        case "pci_id" if re.fullmatch(r"0x[0-9a-fA-F]{1,4}", words[0]):
            port.pci_id = int(words[0], 16)
        case "soft":
            port.is_soft = True
        case "nvswitch":
            port.is_nvswitch = True
        case "rate" | "pci_id":
            pass
        case _:
            return False
    return True


def _route(netdev: str, destination: str, mask: str) -> Iterable[tuple[str, ipaddress.IPv4Network]]:
    """A line of /proc/net/route: hex words in the host's byte order, which is little endian."""
    try:
        raw = [int.from_bytes(bytes.fromhex(word), "little") for word in (destination, mask)]
        size = bin(raw[1]).count("1")
        yield netdev, ipaddress.IPv4Network((raw[0], size), strict=False)
    except ValueError:
        return

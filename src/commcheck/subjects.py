"""What the runner's first frame says is on a host: the machine, its rails, its accelerators. Pure.

The frame is lines ``key value``, written by ``collect/runner.sh``. Names in it come from the
host, so they are facts and never trusted: what is put into a command is checked again there.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Final

from commcheck.collect.base import Frame
from commcheck.command import PLACE
from commcheck.errors import HostError, ParseError
from commcheck.expect import BLUEFIELD_MODE, NICS
from commcheck.kube.place import CONTAINER_LOG
from commcheck.lazy import dataclass, regex
from commcheck.model import UNKNOWN, Accelerator, Host, Machine, Rail
from commcheck.report.cleaning import decode

VENDORS: Final = {"0x10de": "nvidia", "0x19e5": "ascend"}
"""PCI vendor ids of accelerators."""

VF_IDS: Final = {
    "mlx5_core": {0x1014, 0x1016, 0x1018, 0x101A, 0x101C, 0x101E, 0xA2D3},
    "bnxt_en": {
        *(0x1606, 0x1607, 0x1608, 0x1609, 0x16BD, 0x16C1, 0x16C2, 0x16C3, 0x16C4, 0x16C5, 0x16CB),
        *(0x16D3, 0x16DC, 0x16E1, 0x16E5, 0x16E6, 0x1806, 0x1807, 0x1808, 0x1809, 0x1819, 0x181B),
    },
}
"""PCI device ids of virtual functions, by driver: a guest is not shown whose function it has.

Sources: pci.ids, and the device table of Linux drivers/net/ethernet/broadcom/bnxt.
"""

_SMALL: Final = regex(r"\d{1,3}")
_BDF: Final = regex(r"[0-9a-fA-F]{4,}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")

_VIRTUAL: Final = regex(r"kvm|qemu|vmware|virtualbox|xen|bochs|hyper-v|virtual machine", re.I)
"""DMI names of hypervisors. Cloud names do not tell: bare metal is sold under them too."""


@dataclass(slots=True)
class _Port:
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

    @property
    def pci(self) -> str | None:
        found = _BDF.findall(self.path)
        return found[-1].lower() if found else None

    @property
    def is_vf(self) -> bool:
        """A virtual function, or a sub-function: what belongs to the port is not shown to it."""
        return (
            self.physfn is not None
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
class _Found:
    """The frame, sorted by what its lines are about."""

    facts: dict[str, str] = field(default_factory=dict)
    container: bool = False
    ports: list[_Port] = field(default_factory=list)
    accelerators: list[tuple[str, str]] = field(default_factory=list)  # (vendor, PCI path)
    # PCI addresses that the driver knows, and which device file is whose: N of /dev/nvidiaN.
    gpus: dict[str, int | None] = field(default_factory=dict)
    gpu_files: set[int] = field(default_factory=set)
    npus: list[int] = field(default_factory=list)  # chip ids that the driver knows
    default_nets: set[str] = field(default_factory=set)
    nets: list[tuple[str, str]] = field(default_factory=list)  # (netdev, address) behind it
    routes: list[tuple[str, ipaddress.IPv4Network]] = field(default_factory=list)
    lowers: list[tuple[str, str]] = field(default_factory=list)  # (bond or bridge, member)
    net_paths: dict[str, str] = field(default_factory=dict)  # PCI path of a member


def machine_of(host: Host, frame: Frame) -> Machine:
    """The machine, in a session, which ends with ``HostError`` where there is none to be seen."""
    try:
        return machine(host, decode(frame.stdout))
    except ParseError as error:
        raise HostError("no-facts", error.reason, error.remedy) from error


def machine(host: Host, frame_text: str) -> Machine:
    """The machine. Raises ``ParseError`` where the frame tells no kernel or user id."""
    found = _read(frame_text)
    if "kernel" not in found.facts or not found.facts.get("uid", "").isdigit():
        raise ParseError("the runner's first frame", frame_text, "lines with kernel and uid")
    accelerators = tuple(_accelerators(found))
    platform = _platform(host, found, accelerators)
    rails, others = _rails(host, found, platform)
    if BLUEFIELD_MODE.on(host, platform).value == "dpu":
        rails = tuple(replace(rail, qos_on_arm=rail.is_bluefield) for rail in rails)
    rails = tuple(_with_ports(rail, found) for rail in rails)
    return Machine(
        name=host.name,
        platform=platform,
        hostname=found.facts.get("hostname", ""),
        kernel=found.facts["kernel"],
        boot_id=found.facts.get("boot_id", ""),
        uid=int(found.facts["uid"]),
        root=found.facts.get("root", "untried"),
        in_vm=_is_guest(found),
        in_container=found.container,
        rails=rails,
        other_ports=others,
        accelerators=accelerators,
        nccl_log=_text_or_none(host.variables.get("commcheck_nccl_log")),
        traces=_text_or_none(host.variables.get("commcheck_traces")),
        pod=host.name if host.variables.get("commcheck_nccl_log") == CONTAINER_LOG else None,
    )


def _text_or_none(value: object) -> str | None:
    return str(value) if value else None


# --- reading ------------------------------------------------------------------------------------


def _read(text: str) -> _Found:
    found = _Found()
    # Not splitlines: it also splits at bytes that a host name may hold.
    for line in text.split("\n"):
        key, _, value = line.partition(" ")
        words = value.split()
        if not words:
            continue
        match key:
            case "port" if len(words) == 2 and words[1].isdigit():
                found.ports.append(_Port(_hca(words[0], found.ports), int(words[1])))
            case "accelerator" if len(words) == 2 and words[0] in VENDORS:
                found.accelerators.append((VENDORS[words[0]], words[1]))
            case "gpu":
                number = words[1] if len(words) == 2 and _SMALL.fullmatch(words[1]) else None
                found.gpus[words[0].lower()] = None if number is None else int(number)
            case "gpu_file" if _SMALL.fullmatch(words[0]):
                found.gpu_files.add(int(words[0]))
            case "npu" if re.fullmatch(r"\d{1,2}", words[0]):
                found.npus.append(int(words[0]))
            case "default":
                found.default_nets.add(words[0])
            case "net4" if len(words) == 3:
                found.routes.extend(_route(*words))
            case "net6" if len(words) == 2:
                found.nets.append((words[0], words[1]))
            case "lower" if len(words) in (2, 3):
                found.lowers.append((words[0], words[1]))
                found.net_paths[words[1]] = words[-1]
            case "container":
                found.container = True
            case _ if found.ports and _of_port(found.ports[-1], key, words):
                pass
            case _:
                found.facts.setdefault(key, value.strip())
    return found


def _hca(name: str, ports: Sequence[_Port]) -> str:
    """The HCA's name, or one for the report alone: no command takes a name with "?"."""
    return name if PLACE.fullmatch(name) else f"?{len(ports)}"


def _of_port(port: _Port, key: str, words: Sequence[str]) -> bool:
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


# --- machine ------------------------------------------------------------------------------------


def _is_guest(found: _Found) -> bool:
    names = " ".join(found.facts.get(f"dmi_{key}", "") for key in ("sys_vendor", "product_name"))
    told = "cpu_hypervisor" in found.facts or "hypervisor" in found.facts
    return told or bool(_VIRTUAL.search(names))


def _accelerators(found: _Found) -> Iterable[Accelerator]:
    """By PCI address, the order in which NVIDIA's driver numbers; NPUs by the ids they have.

    Chip ids follow the board and not PCI: which address belongs to which is not told here.
    """
    seen = {(vendor, _last_bdf(path)) for vendor, path in found.accelerators}
    if found.npus:
        seen = {each for each in seen if each[0] != "ascend"}
        yield from (Accelerator(index, "ascend") for index in sorted(set(found.npus)))
    known = [address for address in found.gpus if _BDF.fullmatch(address)]
    if found.container and known:
        seen = {each for each in seen if each[0] != "nvidia"}
        known = [address for address in known if _is_given(address, found)]
    seen |= {("nvidia", address) for address in known}
    count = dict.fromkeys(VENDORS.values(), 0)
    for vendor, pci in sorted(seen, key=lambda each: (each[0], each[1] or "")):
        yield Accelerator(count[vendor], vendor, pci)
        count[vendor] += 1
    if found.container and known:
        # Its file was made when the container was; the driver has no such GPU any more.
        for _ in found.gpu_files - {*found.gpus.values()}:
            yield Accelerator(count["nvidia"], "nvidia")
            count["nvidia"] += 1


def _is_given(address: str, found: _Found) -> bool:
    """Whether a container has this GPU: sysfs shows all, and with CDI so does the driver's folder.

    Only the device files are its own: NVIDIA/nvidia-container-toolkit issue 1203.
    """
    number = found.gpus[address]
    return number is None or number in found.gpu_files


def _last_bdf(path: str) -> str | None:
    found = _BDF.findall(path)
    return found[-1].lower() if found else None


def _platform(host: Host, found: _Found, accelerators: Sequence[Accelerator]) -> str:
    declared = host.variables.get("commcheck_platform")
    if isinstance(declared, str) and declared:
        return declared
    vendors = {each.vendor for each in accelerators}
    if vendors == {"ascend"}:
        return "ascend"
    if vendors != {"nvidia"}:
        return UNKNOWN
    hard = [port for port in found.ports if not port.is_soft]
    near = [port for port in hard if _next_to_accelerator(port, found)]
    # Azure's InfiniBand guests are reached by an Ethernet function of the same vendor.
    away = [port for port in hard if port.device() not in _management(found)]
    ports = near or away or hard
    layers = {port.link_layer for port in ports}
    if layers == {"InfiniBand"}:
        return "gpu-ib"
    if ports and all(port.driver == "efa" for port in ports):
        return "gpu-efa"
    # Mixed without a near one: a storage port may be the odd one. Nothing tells, so say nothing.
    return "gpu-roce" if layers == {"Ethernet"} else UNKNOWN


# --- rails --------------------------------------------------------------------------------------


def _rails(host: Host, found: _Found, platform: str) -> tuple[tuple[Rail, ...], tuple[Rail, ...]]:
    """The ports that are judged, and the others."""
    ports = sorted(found.ports, key=_natural)
    declared = host.variables.get(NICS.name)
    if declared:
        return _declared(NICS.read(declared) or (), ports)
    # Virtual functions next to their physical one are for guests: the same wire, told twice.
    physical = {port.pci for port in ports if not port.is_vf}
    ports_of_host = [p for p in ports if p.physfn is None or p.physfn not in physical]
    fabric = [port for port in ports_of_host if _next_to_accelerator(port, found)]
    if fabric:
        dark = [port for port in fabric if _is_dark_second_port(port, fabric)]
        chosen, known = [port for port in fabric if port not in dark], True
    else:
        # Nothing tells which ports carry training: judge those that are not for management.
        chosen = [
            port
            for port in ports_of_host
            if not port.is_soft
            and port.device() not in _management(found)
            and not _is_dark_second_port(port, ports)
        ]
        known = False
    rails = [_rail(index, port, fabric=known or None) for index, port in enumerate(chosen)]
    if not rails and platform in ("gpu-roce", "gpu-ib", "gpu-efa"):
        # A host without any port must not vanish from the report.
        rails = [Rail(0, "none", present=False, fabric=True)]
    others = [port for port in ports if port not in chosen]
    return tuple(rails), tuple(_rail(n, port, fabric=False) for n, port in enumerate(others))


def _declared(
    names: Sequence[str], ports: Sequence[_Port]
) -> tuple[tuple[Rail, ...], tuple[Rail, ...]]:
    rails: list[Rail] = []
    used: list[_Port] = []
    for name in names:
        hca, _, number = name.partition("/")
        mine = [p for p in ports if p.hca == hca and (not number or str(p.number) == number)]
        if mine:
            used.append(mine[0])
            rails.append(_rail(len(rails), mine[0], fabric=True))
        else:
            port = int(number) if number.isdigit() else 1
            rails.append(Rail(len(rails), hca, port, present=False, fabric=True))
    others = [port for port in ports if port not in used]
    return tuple(rails), tuple(_rail(n, port, fabric=False) for n, port in enumerate(others))


def _rail(index: int, port: _Port, *, fabric: bool | None) -> Rail:
    netdev = port.device()
    return Rail(
        index=index,
        hca=port.hca,
        port=port.number,
        # A netdev is put into commands; one that is no name is as good as none.
        netdev=netdev if netdev and PLACE.fullmatch(netdev) else None,
        link_layer=port.link_layer,
        driver=port.driver,
        pci=port.pci,
        state=port.state,
        phys_state=port.phys_state,
        is_vf=port.is_vf,
        fabric=fabric,
        pci_id=port.pci_id,
    )


def _with_ports(rail: Rail, found: _Found) -> Rail:
    """A bond with its physical ports; any other rail as it is.

    A member with an RDMA device of its own belongs to that one: bonded, and no LAG of the card.
    """
    owned = {name for port in found.ports if port.hca != rail.hca for name, _ in port.nets}
    members = sorted({member for upper, member in found.lowers if upper == rail.netdev} - owned)
    paths = {member: _last_bdf(found.net_paths.get(member, "")) for member in members}
    ports = tuple(
        replace(rail, netdev=member, pci=pci or rail.pci, bond=rail.netdev)
        for member, pci in paths.items()
        if PLACE.fullmatch(member)
    )
    return replace(rail, ports=ports)


def _next_to_accelerator(port: _Port, found: _Found) -> bool:
    """Under the same PCIe root port as an accelerator: PIX or PXB in ``nvidia-smi topo``."""
    root = _root_port(port.path)
    return bool(root) and any(_root_port(path) == root for _, path in found.accelerators)


def _root_port(path: str) -> str:
    """Host bridge and root port of a PCI path; "" for a device that sits on the root itself."""
    match = re.search(r"(pci[0-9a-fA-F:]+)/(.+)", path)
    if match is None:
        return ""
    steps = [step for step in match[2].split("/") if _BDF.fullmatch(step)]
    return f"{match[1]}/{steps[0]}" if len(steps) > 1 else ""


def _is_dark_second_port(port: _Port, ports: Sequence[_Port]) -> bool:
    """Down, on a card whose other port is up: two-port NICs are often cabled once."""
    return port.state == "DOWN" and any(
        other.state == "ACTIVE" and other.card == port.card for other in ports if other is not port
    )


def _management(found: _Found) -> set[str | None]:
    """Netdevs of the default route and of this session, and what lies under them."""
    nets: set[str | None] = set(found.default_nets)
    address = found.facts.get("ssh", "")
    try:
        ssh = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        ssh = None
    if isinstance(ssh, ipaddress.IPv4Address):
        nets |= {netdev for netdev, network in found.routes if ssh in network}
    elif ssh is not None:
        nets |= {netdev for netdev, word in found.nets if word == ssh.exploded.replace(":", "")}
    for _ in range(4):  # bond over VLAN over bridge: deeper is not seen in the field
        nets |= {member for upper, member in found.lowers if upper in nets}
    return nets


def _natural(port: _Port) -> tuple[list[tuple[int, str]], int]:
    parts = re.split(r"(\d+)", port.hca)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts], port.number

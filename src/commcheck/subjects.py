"""What is on a host by its first frame: the machine, its rails, its accelerators. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from commcheck.collect.base import Frame
from commcheck.command import PLACE, whole_number
from commcheck.errors import HostError, ParseError
from commcheck.expect import BLUEFIELD_MODE, NICS
from commcheck.first_frame import BDF, VENDORS, Port, Told, last_bdf, read
from commcheck.kube.place import CONTAINER_LOG
from commcheck.lazy import regex
from commcheck.model import UNKNOWN, Accelerator, Host, Machine, Rail
from commcheck.report.cleaning import decode
from commcheck.report.ranges import natural

_VIRTUAL: Final = regex(r"kvm|qemu|vmware|virtualbox|xen|bochs|hyper-v|virtual machine", re.I)
"""DMI names of hypervisors. Cloud names do not tell: bare metal is sold under them too."""


def machine_of(host: Host, frame: Frame) -> Machine:
    """The machine, in a session, which ends with ``HostError`` where there is none to be seen."""
    try:
        return machine(host, decode(frame.stdout))
    except ParseError as error:
        raise HostError("no-facts", error.reason, error.remedy) from error


def machine(host: Host, frame_text: str) -> Machine:
    """The machine. Raises ``ParseError`` where the frame tells no kernel or user id."""
    found = read(frame_text)
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
        for_guests=tuple(sorted(found.for_guests)),
        nccl_log=_text_or_none(host.variables.get("commcheck_nccl_log")),
        traces=_text_or_none(host.variables.get("commcheck_traces")),
        pod=host.name if host.variables.get("commcheck_nccl_log") == CONTAINER_LOG else None,
    )


def _text_or_none(value: object) -> str | None:
    return str(value) if value else None


def _is_guest(found: Told) -> bool:
    names = " ".join(found.facts.get(f"dmi_{key}", "") for key in ("sys_vendor", "product_name"))
    told = "cpu_hypervisor" in found.facts or "hypervisor" in found.facts
    return told or bool(_VIRTUAL.search(names))


def _accelerators(found: Told) -> Iterable[Accelerator]:
    """By PCI address, the order in which NVIDIA's driver numbers; NPUs by the ids they have.

    Chip ids follow the board and not PCI: which address belongs to which is not told here.
    """
    seen = {(vendor, last_bdf(path)) for vendor, path in found.accelerators}
    seen = {each for each in seen if each[1] not in found.for_guests}
    if found.npus:
        seen = {each for each in seen if each[0] != "ascend"}
        yield from (Accelerator(index, "ascend") for index in sorted(set(found.npus)))
    known = [address for address in found.gpus if BDF.fullmatch(address)]
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


def _is_given(address: str, found: Told) -> bool:
    """Whether a container has this GPU: sysfs shows all, and with CDI so does the driver's folder.

    Only the device files are its own: NVIDIA/nvidia-container-toolkit issue 1203.
    """
    number = found.gpus[address]
    return number is None or number in found.gpu_files


def _platform(host: Host, found: Told, accelerators: Sequence[Accelerator]) -> str:
    declared = host.variables.get("commcheck_platform")
    if isinstance(declared, str) and declared:
        return declared
    # One that guests have still tells what kind of host it is.
    vendors = {each.vendor for each in accelerators} | {vendor for vendor, _ in found.accelerators}
    if vendors == {"ascend"}:
        return "ascend"
    if vendors != {"nvidia"}:
        return UNKNOWN
    hard = [port for port in found.ports if not port.is_soft and not port.is_nvswitch]
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


def _rails(host: Host, found: Told, platform: str) -> tuple[tuple[Rail, ...], tuple[Rail, ...]]:
    """The ports that are judged, and the others."""
    ports = sorted(found.ports, key=lambda port: (natural(port.hca), port.number))
    declared = host.variables.get(NICS.name)
    if declared:
        return _declared(NICS.read(declared) or (), ports)
    # Virtual functions next to their physical one are for guests: the same wire, told twice.
    physical = {port.pci for port in ports if not port.is_vf}
    ports_of_host = [
        port
        for port in ports
        if (port.physfn is None or port.physfn not in physical) and not port.is_nvswitch
    ]
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
    names: Sequence[str], ports: Sequence[Port]
) -> tuple[tuple[Rail, ...], tuple[Rail, ...]]:
    rails: list[Rail] = []
    used: list[Port] = []
    for name in names:
        hca, _, number = name.partition("/")
        mine = [p for p in ports if p.hca == hca and (not number or str(p.number) == number)]
        if mine:
            used.append(mine[0])
            rails.append(_rail(len(rails), mine[0], fabric=True))
        else:
            port = whole_number(number)
            port = 1 if port is None else port  # 0 is no port, and must be named as it was written
            rails.append(Rail(len(rails), hca, port, present=False, fabric=True))
    others = [port for port in ports if port not in used]
    return tuple(rails), tuple(_rail(n, port, fabric=False) for n, port in enumerate(others))


def _rail(index: int, port: Port, *, fabric: bool | None) -> Rail:
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


def _with_ports(rail: Rail, found: Told) -> Rail:
    """A bond with its physical ports; any other rail as it is.

    A member with an RDMA device of its own belongs to that one: bonded, and no LAG of the card.
    """
    owned = {name for port in found.ports if port.hca != rail.hca for name, _ in port.nets}
    members = sorted({member for upper, member in found.lowers if upper == rail.netdev} - owned)
    paths = {member: last_bdf(found.net_paths.get(member, "")) for member in members}
    ports = tuple(
        replace(rail, netdev=member, pci=pci or rail.pci, bond=rail.netdev)
        for member, pci in paths.items()
        if PLACE.fullmatch(member)
    )
    return replace(rail, ports=ports)


def _next_to_accelerator(port: Port, found: Told) -> bool:
    """Under the same PCIe root port as an accelerator: PIX or PXB in ``nvidia-smi topo``."""
    root = _root_port(port.path)
    return bool(root) and any(_root_port(path) == root for _, path in found.accelerators)


def _root_port(path: str) -> str:
    """Host bridge and root port of a PCI path; "" for a device that sits on the root itself."""
    match = re.search(r"(pci[0-9a-fA-F:]+)/(.+)", path)
    if match is None:
        return ""
    steps = [step for step in match[2].split("/") if BDF.fullmatch(step)]
    return f"{match[1]}/{steps[0]}" if len(steps) > 1 else ""


def _is_dark_second_port(port: Port, ports: Sequence[Port]) -> bool:
    """Down, on a card whose other port is up: two-port NICs are often cabled once."""
    return port.state == "DOWN" and any(
        other.state == "ACTIVE" and other.card == port.card for other in ports if other is not port
    )


def _management(found: Told) -> set[str | None]:
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

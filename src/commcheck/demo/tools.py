"""What the tools of a simulated host print, from its state. Pure.

Each function is the template of one tool, derived from its recordings; a test renders their facts
and compares byte for byte. Nothing here is shared with the readers that parse these texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from commcheck.demo.state import GpuState, HostState, ModuleState, NicState
from commcheck.formats.qos import Qos, TrafficClass


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answers to one command line."""

    argv: tuple[str, ...]
    stdout: str
    stderr: str = ""
    rc: int = 0


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Every command line that the host's tools know. ``queries``: of ``nvidia-smi --query-gpu``."""
    for nic in host.nics:
        if nic.present:
            yield Answer(("mlnx_qos", "-i", nic.netdev), mlnx_qos(nic.qos))
            yield Answer(("ethtool", nic.netdev), ethtool(nic))
            yield Answer(("ethtool", "-a", nic.netdev), ethtool_pause(nic))
            yield Answer(("ibv_devinfo", "-d", nic.hca), ibv_devinfo(nic))
    yield Answer(("ibv_devinfo",), "".join(ibv_devinfo(nic) for nic in host.nics if nic.present))
    yield Answer(("lsmod",), LSMOD_HEAD + lsmod(host.modules))
    lost = [gpu for gpu in host.gpus if gpu.lost]
    if lost:
        # The tool gives up at the first GPU that it cannot open.
        yield Answer(("nvidia-smi",), nvidia_smi_lost(lost[0]), rc=255)
        return
    yield Answer(("nvidia-smi", "-L"), nvidia_smi_list(host.gpus))
    yield Answer(("nvidia-smi", "nvlink", "-s"), nvidia_smi_nvlink(host.gpus))
    for query in queries:
        argv = ("nvidia-smi", f"--query-gpu={query}", "--format=csv")
        yield Answer(argv, nvidia_smi_query(host.gpus, query.split(",")))


TOOLS: Final = ("mlnx_qos", "ethtool", "ibv_devinfo", "lsmod", "nvidia-smi")


# --- mlnx_qos -----------------------------------------------------------------------------------

_DCBX: Final = {"os": "OS controlled", "firmware": "Firmware controlled"}

_LLDPAD: Final = "****** WARNING: lldpad service is running and may overwrite your settings ******"


def mlnx_qos(qos: Qos) -> str:
    """``mlnx_qos -i DEV``, of mlnx-tools 5.8 and newer."""
    lines = [_LLDPAD, ""] if qos.lldpad_running else []
    lines += [f"DCBX mode: {_DCBX[qos.dcbx or 'os']}", f"Priority trust state: {qos.trust}"]
    if qos.trust == "dscp" and qos.dscp_prio is not None:
        lines += ["dscp2prio mapping:", *_dscp_rows(qos.dscp_prio)]
    sizes = "".join(f"{size}," for size in qos.buffers_bytes or ())
    lines += [
        f"Receive buffer size (bytes): {sizes}max_buffer_size={qos.buffers_total_bytes}",
        f"Cable len: {qos.cable_m}",
        "PFC configuration:",
        "\tpriority    " + "   ".join("01234567"),
        "\tenabled     " + "".join(f"{int(prio in qos.pfc)}   " for prio in range(8)),
        "\tbuffer      " + "".join(f"{buffer}   " for buffer in qos.prio_buffer or ()),
        *(line for each in qos.traffic_classes or () for line in _class_lines(each)),
    ]
    return "".join(f"{line}\n" for line in lines)


def _dscp_rows(dscp_prio: tuple[tuple[int, int], ...]) -> Iterator[str]:
    """Eight codes a row; a priority with more has a second one."""
    for prio in range(8):
        codes = [dscp for dscp, of in dscp_prio if of == prio]
        for at in range(0, len(codes), 8):
            yield f"\tprio:{prio} dscp:" + "".join(f"{code:02d}," for code in codes[at : at + 8])


def _class_lines(each: TrafficClass) -> Iterator[str]:
    rate = each.ratelimit_gbits
    limit = rate if rate == "unlimited" else f"{rate} Gbps"
    tsa = each.tsa if each.tsa != "ets" else f"ets, bw: {each.bandwidth_percent}%"
    yield f"tc: {each.tc} ratelimit: {limit}, tsa: {tsa}"
    for prio in each.priorities:
        yield f"\t priority:  {prio}"


# --- ethtool ------------------------------------------------------------------------------------


def ethtool(nic: NicState) -> str:
    """``ethtool DEV``, of version 6."""
    up = nic.link_up
    lines = [
        f"Settings for {nic.netdev}:",
        "\tSupported ports: [ FIBRE ]",
        *_modes("Supported link modes:   ", nic.modes),
        "\tSupported pause frame use: Symmetric",
        "\tSupports auto-negotiation: Yes",
        "\tSupported FEC modes: RS",
        *_modes("Advertised link modes:  ", nic.modes),
        "\tAdvertised pause frame use: Symmetric",
        "\tAdvertised auto-negotiation: Yes",
        "\tAdvertised FEC modes: RS",
    ]
    if up:
        lines += [
            "\tLink partner advertised link modes:  Not reported",
            "\tLink partner advertised pause frame use: No",
            "\tLink partner advertised auto-negotiation: Yes",
            "\tLink partner advertised FEC modes: Not reported",
        ]
    lines.append(f"\tSpeed: {nic.speed_mbits}Mb/s" if up else "\tSpeed: Unknown!")
    if up and nic.lanes is not None:
        lines.append(f"\tLanes: {nic.lanes}")
    lines += [
        "\tDuplex: Full" if up else "\tDuplex: Unknown! (255)",
        f"\tAuto-negotiation: {'on' if nic.autoneg else 'off'}",
        "\tPort: FIBRE",
        "\tPHYAD: 0",
        "\tTransceiver: internal",
        "\tSupports Wake-on: d",
        "\tWake-on: d",
        "        Current message level: 0x00000004 (4)",
        "                               link",
        f"\tLink detected: {'yes' if up else _no(nic.down_reason)}",
    ]
    return "".join(f"{line}\n" for line in lines)


def _no(reason: str) -> str:
    # Kernels before 5.11 know no reason.
    return f"no ({reason})" if reason else "no"


def _modes(title: str, modes: tuple[str, ...]) -> Iterator[str]:
    for at, mode in enumerate(modes):
        yield f"\t{title if at == 0 else ' ' * len(title)}{mode}"


def ethtool_pause(nic: NicState) -> str:
    """``ethtool -a DEV``."""
    on = {True: "on", False: "off"}
    text = (
        f"Pause parameters for {nic.netdev}:\n"
        f"Autonegotiate:\t{on[nic.pause_autoneg]}\n"
        f"RX:\t\t{on[nic.pause_rx]}\n"
        f"TX:\t\t{on[nic.pause_tx]}\n"
    )
    if nic.pause_negotiated is not None:
        rx, tx = nic.pause_negotiated
        text += f"RX negotiated: {on[rx]}\nTX negotiated: {on[tx]}\n"
    return f"{text}\n"


# --- ibv_devinfo --------------------------------------------------------------------------------

_CODES: Final = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
"""IBV_MTU_* of the verbs API."""

_OVERHEAD_BYTES: Final = 52
"""GRH or IP and UDP, BTH and ICRC, as the kernel reckons them (iboe_get_mtu)."""


def active_mtu_bytes(netdev_mtu_bytes: int) -> int:
    """The RDMA MTU that fits into the netdev's."""
    return max(size for size in _CODES if size + _OVERHEAD_BYTES <= max(netdev_mtu_bytes, 308))


def ibv_devinfo(nic: NicState) -> str:
    """One HCA of ``ibv_devinfo``."""
    mtu = active_mtu_bytes(nic.mtu_bytes if nic.link_up else 1500)
    state = "PORT_ACTIVE (4)" if nic.link_up else "PORT_DOWN (1)"
    return (
        f"hca_id:\t{nic.hca}\n"
        "\ttransport:\t\t\tInfiniBand (0)\n"
        f"\tfw_ver:\t\t\t\t{nic.firmware}\n"
        f"\tnode_guid:\t\t\t{nic.guid}\n"
        f"\tsys_image_guid:\t\t\t{nic.image_guid}\n"
        "\tvendor_id:\t\t\t0x02c9\n"
        f"\tvendor_part_id:\t\t\t{nic.part_id}\n"
        "\thw_ver:\t\t\t\t0x0\n"
        f"\tboard_id:\t\t\t{nic.board_id}\n"
        "\tphys_port_cnt:\t\t\t1\n"
        "\t\tport:\t1\n"
        f"\t\t\tstate:\t\t\t{state}\n"
        "\t\t\tmax_mtu:\t\t4096 (5)\n"
        f"\t\t\tactive_mtu:\t\t{mtu} ({_CODES[mtu]})\n"
        f"\t\t\tsm_lid:\t\t\t{nic.sm_lid}\n"
        f"\t\t\tport_lid:\t\t{nic.lid}\n"
        "\t\t\tport_lmc:\t\t0x00\n"
        f"\t\t\tlink_layer:\t\t{nic.link_layer}\n"
        "\n"
    )


# --- lsmod --------------------------------------------------------------------------------------


LSMOD_HEAD: Final = "Module                  Size  Used by\n"


def lsmod(modules: tuple[ModuleState, ...]) -> str:
    """The lines of ``lsmod`` below its first."""
    lines = [
        f"{each.name:<19} {each.size:>8}  {' '.join([str(each.uses), *_users(each)])}\n"
        for each in modules
    ]
    return "".join(lines)


def _users(module: ModuleState) -> Iterator[str]:
    if module.users:
        yield ",".join(module.users)


def proc_modules(modules: tuple[ModuleState, ...]) -> str:
    """``/proc/modules``: as the kernel lists them, users with a comma behind each."""
    return "".join(
        f"{each.name} {each.size} {each.uses} "
        f"{''.join(f'{user},' for user in each.users) or '-'} Live 0x0000000000000000\n"
        for each in modules
    )


# --- nvidia-smi ---------------------------------------------------------------------------------


def nvidia_smi_list(gpus: tuple[GpuState, ...]) -> str:
    """``nvidia-smi -L``."""
    return "".join(_gpu_line(index, gpu) for index, gpu in enumerate(gpus))


def _gpu_line(index: int, gpu: GpuState) -> str:
    return f"GPU {index}: {gpu.name} (UUID: {gpu.uuid})\n"


def nvidia_smi_nvlink(gpus: tuple[GpuState, ...]) -> str:
    """``nvidia-smi nvlink -s``."""
    lines = []
    for index, gpu in enumerate(gpus):
        lines.append(_gpu_line(index, gpu))
        if gpu.all_inactive:
            lines.append("NVML: Unable to retrieve NVLink information as all links are inActive\n")
        for link, gbytes in enumerate(gpu.links_gbytes):
            lines.append(
                f"\t Link {link}: {'<inactive>' if gbytes is None else f'{gbytes} GB/s'}\n"
            )
    return "".join(lines)


def nvidia_smi_lost(gpu: GpuState) -> str:
    """What every call says once a GPU fell off the bus."""
    domain, _, rest = gpu.pci.partition(":")
    address = f"{domain}:{rest.upper()}"
    return f"Unable to determine the device handle for GPU{address}: Unknown Error\n"


def _known(value: int | None) -> str:
    return "[N/A]" if value is None else str(value)


_COLUMNS: Final[dict[str, Callable[[int, GpuState], str]]] = {
    "index": lambda index, _: str(index),
    "name": lambda _, gpu: gpu.name,
    "uuid": lambda _, gpu: gpu.uuid,
    "pci.bus_id": lambda _, gpu: f"0000{gpu.pci.upper()}",
    "pcie.link.gen.current": lambda _, gpu: _known(gpu.pcie_gen),
    "pcie.link.gen.max": lambda _, __: "5",
    "pcie.link.width.current": lambda _, gpu: _known(gpu.pcie_width),
    "pcie.link.width.max": lambda _, __: "16",
    "utilization.gpu": lambda _, gpu: f"{gpu.load_percent} %",
    "clocks_throttle_reasons.active": lambda _, gpu: f"0x{gpu.idle_reasons:016x}",
    "clocks_event_reasons.active": lambda _, gpu: f"0x{gpu.idle_reasons:016x}",
    "ecc.errors.uncorrected.volatile.total": lambda _, __: "0",
}

_UNITS: Final = {"utilization.gpu": " [%]"}


def nvidia_smi_query(gpus: tuple[GpuState, ...], columns: list[str]) -> str:
    """``nvidia-smi --query-gpu=COLUMNS --format=csv``; a column that is not simulated is [N/A]."""
    lines = [", ".join(f"{name}{_UNITS.get(name, '')}" for name in columns)]
    for index, gpu in enumerate(gpus):
        row = [_COLUMNS[name](index, gpu) if name in _COLUMNS else "[N/A]" for name in columns]
        lines.append(", ".join(row))
    return "".join(f"{line}\n" for line in lines)

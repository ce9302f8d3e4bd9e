"""``ethtool``: link settings and pause frames of a port."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState, NicState

TOOLS: Final = ("ethtool",)


NETLINK: Final = (5, 6)
"""From this version on ethtool asks by netlink, and prints in another order."""


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Of every Ethernet port, for a user who is no root."""
    for nic in host.ports:
        if nic.present and nic.link_layer == "Ethernet":
            yield Answer(
                ("ethtool", nic.netdev),
                settings(nic, host.ethtool, root=False),
                NOT_ROOT[host.ethtool >= NETLINK],
            )
            yield Answer(("ethtool", "-a", nic.netdev), pause(nic))
            yield Answer(("ethtool", "-I", "-a", nic.netdev), pause(nic, statistics=True))


NOT_ROOT: Final = {
    True: "netlink error: Operation not permitted\n",
    False: "Cannot get wake-on-lan settings: Operation not permitted\n",
}
"""What is said on stderr of the lines that only root sees, by whether netlink is asked."""


def settings(nic: NicState, version: tuple[int, int] = (6, 1), *, root: bool) -> str:
    """``ethtool DEV``."""
    netlink = version >= NETLINK
    up = nic.link_up
    lines = [
        f"Settings for {nic.netdev}:",
        "\tSupported ports: [ FIBRE ]",
        *_modes("Supported link modes:   ", nic.modes),
        "\tSupported pause frame use: Symmetric",
        "\tSupports auto-negotiation: Yes",
        f"\tSupported FEC modes: {nic.fec_modes}",
        *_modes("Advertised link modes:  ", nic.modes),
        "\tAdvertised pause frame use: Symmetric",
        "\tAdvertised auto-negotiation: Yes",
        f"\tAdvertised FEC modes: {nic.fec_modes}",
    ]
    if up and netlink:
        lines += [
            "\tLink partner advertised link modes:  Not reported",
            "\tLink partner advertised pause frame use: No",
            "\tLink partner advertised auto-negotiation: Yes",
            "\tLink partner advertised FEC modes: Not reported",
        ]
    lines.append(f"\tSpeed: {nic.speed_mbits}Mb/s" if up else "\tSpeed: Unknown!")
    if up and netlink and nic.lanes is not None:
        lines.append(f"\tLanes: {nic.lanes}")
    lines.append("\tDuplex: Full" if up else "\tDuplex: Unknown! (255)")
    autoneg = f"\tAuto-negotiation: {'on' if nic.autoneg else 'off'}"
    place = ["\tPort: FIBRE", "\tPHYAD: 0", "\tTransceiver: internal"]
    lines += [autoneg, *place] if netlink else [*place, autoneg]
    if root:
        indent, below = (" " * 8, " " * 31) if netlink else ("\t", "\t\t\t       ")
        lines += [
            "\tSupports Wake-on: d",
            "\tWake-on: d",
            f"{indent}Current message level: 0x00000004 (4)",
            f"{below}link",
        ]
    lines.append(f"\tLink detected: {'yes' if up else _no(nic.down_reason)}")
    return "".join(f"{line}\n" for line in lines)


def _no(reason: str) -> str:
    # Kernels before 5.11 know no reason.
    return f"no ({reason})" if reason else "no"


def _modes(title: str, modes: tuple[str, ...]) -> Iterator[str]:
    for at, mode in enumerate(modes):
        yield f"\t{title if at == 0 else ' ' * len(title)}{mode}"


def pause(nic: NicState, *, statistics: bool = False) -> str:
    """``ethtool -a DEV``; with ``-I`` also how often it paused and was paused by global pause."""
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
    if statistics:
        text += "Statistics:\n  tx_pause_frames: 0\n  rx_pause_frames: 0\n"
    return f"{text}\n"

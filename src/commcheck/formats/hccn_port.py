"""``hccn_tool`` queries of one or two lines: link, health, speed, addresses, MTU, FEC, TLS.

The layouts are those of the tool's public sources and of the Ascend documentation.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from commcheck.errors import ParseError
from commcheck.formats.hccn import PerNpu, per_npu
from commcheck.formats.lines import only
from commcheck.lazy import dataclass, regex


@dataclass(frozen=True, slots=True)
class NpuLink:
    """``hccs_loss_percent``: of packets over HCCS, asked where the link is down; None: no HCCS."""

    is_up: bool
    hccs_loss_percent: float | None = None


def link(text: str, tool: str) -> NpuLink:
    """``link status: UP``, and below ``[hccs]`` the answer of a ping."""
    said, mark, ping = text.partition("[hccs]\n")
    up = _line(r"link status: (UP|DOWN)", said, tool)[1] == "UP"
    return NpuLink(up, loss_percent(ping) if mark else None)


_LOSS: Final = regex(
    r"^(\d+) packets transmitted, (\d+) received, (\d{1,3}\.\d+)% packets? loss$", re.MULTILINE
)


def loss_percent(text: str) -> float | None:
    """Lost packets of ``-ping`` and ``-hccs_ping``; None where it did not send any.

    ``-hccs_ping`` ends in "Cmd executed successfully!" even where all are lost.
    """
    found = _LOSS.search(text)
    return None if found is None else float(found[3])


HEALTH: Final = (
    "Success",
    "Socket fail",
    "Socket failed",
    "Receive timeout",
    "Unreachable",
    "Time exceeded",
    "Fault",
    "Init",
    "Thread error",
    "Detect ip set",
    "Unknown",
)


def health(text: str, tool: str) -> str:
    """One of ``HEALTH``."""
    said = _line(r"net health status: ([A-Z][a-z ]+)", text, tool)[1]
    if said not in HEALTH:
        raise ParseError(tool, text, f"one of {', '.join(HEALTH)}")
    return said


def speed(text: str, tool: str) -> int | None:
    """Mb/s; None where the link is down."""
    said = _line(r"Speed: (?:(\d{1,7}) Mb/s|Unknown!)", text, tool)[1]
    return None if said is None else int(said)


_NO_ADDRESS: Final = regex(r"Get ip\w* failed, because no ip\w* was preset there!\n|\n*")
_NO_GATEWAY: Final = regex(r"Get gateway failed, because no gateway was preset there!\n|\n*")


def address(text: str, tool: str) -> ipaddress.IPv4Interface | None:
    """The address with its netmask; None where none is set."""
    if _NO_ADDRESS.fullmatch(text):
        return None
    lines = text.strip("\n").split("\n")
    if len(lines) != 2:
        raise ParseError(tool, text, "ipaddr and netmask")
    ip = only(r"ipaddr:\s*([\d.]{7,15})", lines[0], text, tool)[1]
    mask = only(r"netmask:\s*([\d.]{7,15})", lines[1], text, tool)[1]
    try:
        return ipaddress.IPv4Interface(f"{ip}/{mask}")
    except ValueError:
        raise ParseError(tool, text, "an IPv4 address and its netmask") from None


def gateway(text: str, tool: str) -> ipaddress.IPv4Address | None:
    """None where none is set."""
    if _NO_GATEWAY.fullmatch(text):
        return None
    said = _line(r"default gateway:\s*([\d.]{7,15}), Iface:\s*\w+", text, tool)[1]
    return _ipv4(said, text, tool)


def netdetect(text: str, tool: str) -> ipaddress.IPv4Address | None:
    """The address that the NPU keeps asking; None where none is set."""
    said = _line(r"netdetect addr(?:ess)?:\s*([\d.]{7,15})", text, tool)[1]
    found = _ipv4(said, text, tool)
    return None if found == ipaddress.IPv4Address(0) else found


def vnic(text: str, tool: str) -> ipaddress.IPv4Address:
    """The address by which an A3 is reached over HCCS: the labels vary, the first is no mask."""
    found = re.search(r"^[a-z ]*(?:ip ?addr|address)[a-z]*:\s*([\d.]{7,15})$", text, re.MULTILINE)
    if found is None:
        raise ParseError(tool, text, "an address of the virtual NIC")
    return _ipv4(found[1], text, tool)


def mtu(text: str, tool: str) -> int:
    """Bytes."""
    return int(_line(r"mtu:\s*(\d{2,5})", text, tool)[1])


def fec(text: str, tool: str) -> str:
    """``rs``, ``no``, or what else stands before "FEC mode"."""
    return _line(r"fec mode:\s*([a-z][\w -]{0,20}) FEC mode", text, tool)[1]


_SWITCH: Final = regex(
    r"^(?:dev_id:|device )\d+, tls switch\[([01])\]\(0:disable, 1:enable\)", re.MULTILINE
)
_NO_CERTIFICATE: Final = regex(r"\s*no certificate found\b.*\s*", re.IGNORECASE)


def tls(text: str, tool: str) -> int:
    """The switch: 0 off, 1 on. What is in brackets behind it is a legend; certificates follow.

    Without a certificate the tool tells that alone, as an error, and TLS is off: HCCL user guide.
    """
    if _NO_CERTIFICATE.fullmatch(text):
        return 0
    found = _SWITCH.findall(text)
    if len(found) != 1:
        raise ParseError(tool, text, "tls switch[0] or [1], once, or that no certificate is found")
    return int(found[0])


@dataclass(frozen=True, slots=True)
class SlavePfc:
    """Priorities with PFC on; ``netdev`` is "" but on bonded products, which tell of each slave."""

    netdev: str
    priorities: frozenset[int]


def pfc(text: str, tool: str) -> tuple[SlavePfc, ...]:
    """The table, or one for each slave of a bond."""
    head, _, body = text.partition("\n")
    only(r"PFC configuration:", head, text, tool)
    table = r"priority   0 1 2 3 4 5 6 7\nenabled    ((?:[01] ){7}[01])\n"
    blocks = re.findall(rf"(?:\[dev_name:(\w+)\]\n)?{table}", body)
    rest = re.sub(rf"(?:\[dev_name:\w+\]\n)?{table}", "", body)
    names = [name for name, _ in blocks]
    if not blocks or rest or len(set(names)) != len(names) or ("" in names and len(names) > 1):
        raise ParseError(tool, text, "rows priority and enabled, for each device once")
    return tuple(
        SlavePfc(name, frozenset(at for at, flag in enumerate(flags.split()) if flag == "1"))
        for name, flags in blocks
    )


def dscp_to_tc(text: str, tool: str) -> tuple[tuple[int, int], ...]:
    """(DSCP, traffic class) of every row."""
    head, *rows = text.rstrip("\n").split("\n")
    only(r"dscp\s+tc\s*", head, text, tool)
    pairs = []
    for row in rows:
        found = only(r"\s*(\d{1,2})\s+([0-7])\s*", row, text, tool)
        pairs.append((int(found[1]), int(found[2])))
    if not pairs or len({dscp for dscp, _ in pairs}) != len(pairs) or max(pairs)[0] > 63:
        raise ParseError(tool, text, "rows of a DSCP up to 63 and its class, each once")
    return tuple(pairs)


def _line(pattern: str, text: str, tool: str) -> re.Match[str]:
    return only(pattern, text.strip("\n"), text, tool)


def _ipv4(said: str, text: str, tool: str) -> ipaddress.IPv4Address:
    try:
        return ipaddress.IPv4Address(said)
    except ValueError:
        raise ParseError(tool, text, "an IPv4 address") from None


LINK: Final = per_npu("-link -g", link)
NET_HEALTH: Final = per_npu("-net_health -g", health)
SPEED: Final = per_npu("-speed -g", speed)
ADDRESS: Final = per_npu("-ip -g", address)
GATEWAY: Final = per_npu("-gateway -g", gateway)
NETDETECT: Final = per_npu("-netdetect -g", netdetect)
VNIC: Final = per_npu("-vnic -g", vnic)
MTU: Final = per_npu("-mtu -g", mtu)
FEC: Final = per_npu("-fec -g", fec)
TLS: Final = per_npu("-tls -g", tls)
PFC: Final = per_npu("-pfc -g", pfc)
DSCP_TO_TC: Final = per_npu("-dscp_to_tc -g", dscp_to_tc)

Pfc = PerNpu[tuple[SlavePfc, ...]]
"""PFC of every NPU."""

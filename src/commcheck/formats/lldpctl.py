"""``lldpctl -f json DEV`` of lldpd: the neighbours of one netdev.

The daemon changes the shape with the number of interfaces and neighbours: one is an object, more
are a list; a chassis with a name is keyed by it. The IEEE 802.1Qaz TLVs that lldpd does not know
by name are handed on as bytes, and read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from commcheck.check import Reader
from commcheck.command import Command, Output, whole_number
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.lines import parse_json
from commcheck.formats.lldp import Neighbour
from commcheck.model import Rail

TOOL: Final = "lldpctl"

_OUI_8021: Final = "00,80,C2"
_PFC_SUBTYPE: Final = "11"  # IEEE 802.1Q, annex D: priority-based flow control configuration


def parse(output: Output) -> tuple[Neighbour, ...]:
    """The neighbours, none where nobody was heard; raises ``CommandFailed`` without the daemon."""
    both = f"{output.text}{output.stderr}"
    if output.rc != 0:
        if re.search("unable to connect to socket|unable to get connection", both):
            raise CommandFailed("lldpd does not run", "systemctl enable --now lldpd")
        raise CommandFailed(f"lldpctl failed with exit code {output.rc}: {output.complaint}")
    document = parse_json(output, TOOL)
    match document:
        case {"lldp": dict(lldp)}:
            pass
        case _:
            raise ParseError(TOOL, output.text, "an object lldp")
    return tuple(_neighbour(each, output.text) for each in _interfaces(lldp.get("interface", {})))


def _interfaces(interface: Any) -> Iterator[Any]:
    """Each neighbour's object, whatever it is wrapped in."""
    for each in interface if isinstance(interface, list) else [interface]:
        if isinstance(each, dict):
            yield from (value for value in each.values())
        else:
            yield each


def _neighbour(entry: Any, text: str) -> Neighbour:
    if not isinstance(entry, dict) or not isinstance(entry.get("chassis"), dict):
        raise ParseError(TOOL, text, "chassis and port of each neighbour")
    chassis, port = entry["chassis"], entry.get("port")
    switch = None
    if "id" not in chassis and len(chassis) == 1:
        ((switch, chassis),) = chassis.items()
    if not isinstance(chassis, dict) or not isinstance(port, dict):
        raise ParseError(TOOL, text, "chassis and port of each neighbour")
    pfc, willing = _pfc(entry.get("unknown-tlvs"), text)
    return Neighbour(
        switch=switch or _text(chassis.get("name"), text),
        chassis=_identity(chassis.get("id"), text),
        port=_identity(port.get("id"), text),
        port_description=_text(port.get("descr"), text),
        max_frame_bytes=_number(port.get("mfs"), text),
        peer_pfc=pfc,
        peer_pfc_willing=willing,
    )


def _identity(value: Any, text: str) -> str | None:
    """``{"type": "ifname", "value": "Ethernet12"}``."""
    match value:
        case None:
            return None
        case {"value": str(name)}:
            return name
        case _:
            raise ParseError(TOOL, text, "type and value of an id")


def _text(value: Any, text: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ParseError(TOOL, text, "names as text")


def _number(value: Any, text: str) -> int | None:
    if value is None:
        return None
    number = whole_number(value)
    if number is None:
        raise ParseError(TOOL, text, f"a frame size, not {str(value)[:40]!r}")
    return number


def _pfc(tlvs: Any, text: str) -> tuple[frozenset[int] | None, bool | None]:
    """Priorities and willing bit of the PFC TLV: two bytes, flags and one bit a priority."""
    found = tlvs.get("unknown-tlv", []) if isinstance(tlvs, dict) else []
    for tlv in found if isinstance(found, list) else [found]:
        match tlv:
            case {"oui": str(oui), "subtype": subtype, "value": str(value)} if (
                oui.upper() == _OUI_8021 and str(subtype) == _PFC_SUBTYPE
            ):
                if not re.fullmatch(r"[0-9A-Fa-f]{2},[0-9A-Fa-f]{2}", value):
                    raise ParseError(TOOL, text, f"two bytes of PFC, not {value[:30]!r}")
                flags, enabled = (int(byte, 16) for byte in value.split(","))
                on = frozenset(prio for prio in range(8) if enabled >> prio & 1)
                return on, bool(flags & 0x80)
    return None, None


LLDPCTL: Final = Reader(
    tool=TOOL,
    commands=(Command((TOOL, "-f", "json", "{netdev}"), root=True),),
    parse=parse,
    per=Rail,
)

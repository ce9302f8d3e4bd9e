"""``lspci -vvv``: PCIe link, request sizes and access control of devices (root).

Lines are read by the names of their registers; ``LnkCap2``, ``LnkSta2`` and ``DevCtl2`` are others.
The marks behind speed and width ("ok", "downgraded") changed with the releases and are left out:
the numbers say it. Without root a device shows no capabilities at all, and says so. A release that
is older than the link's generation calls its speed unknown.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.lines import only, whole_lines
from commcheck.lazy import dataclass, regex
from commcheck.model import Rail

TOOL: Final = "lspci"

_HEAD: Final = regex(r"((?:[0-9a-f]{4,}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (\S.*)")
_LINK: Final = regex(
    r"(?:Port #\d+, )?Speed (?:unknown|(\d+(?:\.\d)?)GT/s)(?: \(\w+\))?, Width x(\d+)(?: \(\w+\))?"
    r"(?:,.*)?"
)
_BUS: Final = regex(r"primary=([0-9a-f]{2}), secondary=([0-9a-f]{2}), subordinate=([0-9a-f]{2}),.*")
_SIZES: Final = regex(r"MaxPayload (\d+) bytes, MaxReadReq (\d+) bytes")
_ACS: Final = regex(r"[A-Z]\w+[+-](?: [A-Z]\w+[+-])*")
_GONE: Final = "!!! Unknown header type 7f"
_TYPE: Final = regex(r"Capabilities: \[\w+\] Express \(v\d\) (.*?)(?: \(Slot[+-]\))?(?:, .*)?")


@dataclass(frozen=True, slots=True)
class PciDevice:
    """A device. ``None`` is not told, as all of it is without root."""

    slot: str  # with its domain: "0000:81:00.0"
    name: str
    told: bool  # its capabilities were shown: they need root
    answers: bool = True  # False: all its registers read as ones, it has left the bus
    kind: str | None = None  # "Endpoint", "Root Port", "Upstream Port", "Downstream Port"
    speed_gts: float | None = None
    width: int | None = None
    max_speed_gts: float | None = None
    max_width: int | None = None
    max_payload_bytes: int | None = None
    max_read_request_bytes: int | None = None
    relaxed_ordering: bool | None = None
    acs: frozenset[str] | None = None  # what is switched on, of what the device can
    buses: tuple[int, int] | None = None  # of a bridge: the first and last bus below it

    def is_above(self, slot: str) -> bool:
        """True for a bridge through which this device is reached."""
        domain, _, rest = slot.rpartition(":")[0].rpartition(":")
        if self.buses is None or not self.slot.startswith(f"{domain}:"):
            return False
        return self.buses[0] <= int(rest, 16) <= self.buses[1]


def parse(output: Output) -> tuple[PciDevice, ...]:
    """The devices asked for; none where there are none."""
    require_ok(output, TOOL)
    text = output.text
    if not text.strip():
        return ()
    blocks: list[tuple[str, str, list[str]]] = []
    for line in whole_lines(text, TOOL):
        if head := _HEAD.fullmatch(line):
            slot = head[1] if head[1].count(":") == 2 else f"0000:{head[1]}"
            blocks.append((slot, head[2], []))
        elif line.startswith("\t") and blocks:
            blocks[-1][2].append(line)
        elif line and not re.match(r"lspci: |pcilib: ", line):
            raise ParseError(TOOL, text, f"an address, or what belongs to one, not {line[:60]!r}")
    if not blocks:
        raise ParseError(TOOL, text, "the address of a device")
    return tuple(_device(*block, text) for block in blocks)


def _device(slot: str, name: str, lines: list[str], text: str) -> PciDevice:
    stripped = [line.strip() for line in lines]
    if _GONE in stripped:
        return PciDevice(slot, name, told=False, answers=False)
    told = any(line.startswith("Capabilities: [") for line in stripped)
    if not any(line.startswith("Capabilities: ") for line in stripped):
        raise ParseError(TOOL, text, f"the capabilities of {slot}, or that access is denied")
    found: dict[str, str] = {}
    for line in stripped:
        key, tab, value = line.partition(":\t")
        if not tab:
            key, tab, value = line.partition(": ")
        if tab and key in ("LnkCap", "LnkSta", "Bus", "ACSCtl"):
            if key in found:
                raise ParseError(TOOL, text, f"{key} of {slot} once")
            found[key] = value
    types = [match[1] for line in stripped if (match := _TYPE.fullmatch(line))]
    sizes = [match for line in stripped if (match := _SIZES.fullmatch(line))]
    order = [line for line in stripped if re.match(r"RlxdOrd[+-]", line)]
    is_express = any("Express (v" in line for line in stripped)
    if len(types) > 1 or len(sizes) > 1 or len(order) > 1:
        raise ParseError(TOOL, text, f"the registers of {slot} once")
    # A device with PCI Express has both registers; one that lacks them was cut.
    whole = types and sizes and {"LnkCap", "LnkSta"} <= found.keys()
    if is_express and not whole and not _has_no_link(types):
        raise ParseError(TOOL, text, f"DevCtl, LnkCap and LnkSta of {slot}")
    now, most = _link(found.get("LnkSta"), text), _link(found.get("LnkCap"), text)
    return PciDevice(
        slot=slot,
        name=name,
        told=told,
        kind=types[0] if types else None,
        speed_gts=now[0],
        width=now[1],
        max_speed_gts=most[0],
        max_width=most[1],
        max_payload_bytes=int(sizes[0][1]) if sizes else None,
        max_read_request_bytes=int(sizes[0][2]) if sizes else None,
        relaxed_ordering=order[0].startswith("RlxdOrd+") if order else None,
        acs=_acs(found.get("ACSCtl"), text),
        buses=_buses(found.get("Bus"), text),
    )


def _has_no_link(types: list[str]) -> bool:
    """What is integrated into the root complex has no link."""
    return bool(types) and types[0].startswith("Root Complex")


def _link(value: str | None, text: str) -> tuple[float | None, int | None]:
    if value is None:
        return None, None
    match = only(_LINK, value, text, TOOL)
    return None if match[1] is None else float(match[1]), int(match[2])


def _acs(value: str | None, text: str) -> frozenset[str] | None:
    if value is None:
        return None
    only(_ACS, value, text, TOOL)
    return frozenset(word[:-1] for word in value.split() if word.endswith("+"))


def _buses(value: str | None, text: str) -> tuple[int, int] | None:
    if value is None:
        return None
    match = only(_BUS, value, text, TOOL)
    return int(match[2], 16), int(match[3], 16)


LSPCI_RAIL: Final = Reader(
    tool=TOOL,
    commands=(Command((TOOL, "-D", "-vvv", "-s", "{pci}"), root=True),),
    parse=parse,
    per=Rail,
)
LSPCI_BRIDGES: Final = Reader(
    tool="lspci-bridges",
    # Class 0604: PCI bridges. Root ports and the ports of switches are such.
    commands=(Command((TOOL, "-D", "-vvv", "-d", "::0604"), root=True),),
    parse=parse,
)

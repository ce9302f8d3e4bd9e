"""``lldptool`` of lldpad: the neighbour (``-tni DEV``), and the PFC TLV that this host sends.

TLVs are a title and indented lines. "End of LLDPDU TLV" ends a neighbour, so one that was cut
lacks it. A switch's description of itself goes on over lines that are not indented, and the tool
complains of an address of a kind that it does not know (``print_mng_addr`` of lldp_basman_clif.c).
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.lines import only, whole_lines
from commcheck.formats.lldp import Neighbour
from commcheck.lazy import dataclass, regex
from commcheck.model import Rail

TOOL: Final = "lldptool"

_TITLE: Final = regex(r"[A-Z][\w .:/-]*TLV")
_FREE_TEXT: Final = ("System Description TLV", "Management Address TLV")


@dataclass(frozen=True, slots=True)
class PfcTlv:
    """PFC as one side announces it."""

    enabled: frozenset[int]
    willing: bool | None = None


def parse(output: Output) -> tuple[Neighbour, ...]:
    """The neighbour, none where nobody was heard; raises ``CommandFailed`` without the daemon."""
    _require_daemon(output)
    text = output.text
    if not text.strip():
        return ()
    tlvs = _tlvs(text)
    if "End of LLDPDU TLV" not in tlvs or "Chassis ID TLV" not in tlvs:
        raise ParseError(TOOL, text, "TLVs from the chassis to the end of the LLDPDU")
    pfc = parse_pfc_lines(tlvs["IEEE 8021QAZ PFC TLV"], text) if _has_pfc(tlvs) else None
    return (
        Neighbour(
            switch=_single(tlvs, "System Name TLV"),
            chassis=_identity(tlvs, "Chassis ID TLV"),
            port=_identity(tlvs, "Port ID TLV"),
            port_description=_single(tlvs, "Port Description TLV"),
            max_frame_bytes=_frame(tlvs, text),
            peer_pfc=None if pfc is None else pfc.enabled,
            peer_pfc_willing=None if pfc is None else pfc.willing,
        ),
    )


def parse_pfc(output: Output) -> PfcTlv:
    """``lldptool -ti DEV -V PFC``, and the same with ``-c enabled``."""
    _require_daemon(output)
    text = output.text
    lines = whole_lines(text, TOOL)
    if len(lines) == 1 and (short := re.fullmatch(r"enabled=(.*)", lines[0])):
        return PfcTlv(_priorities(short[1], text))
    tlvs = _tlvs(text)
    if not _has_pfc(tlvs):
        raise ParseError(TOOL, text, "the PFC TLV")
    return parse_pfc_lines(tlvs["IEEE 8021QAZ PFC TLV"], text)


def parse_pfc_lines(lines: list[str], text: str) -> PfcTlv:
    """The body of a PFC TLV."""
    values: dict[str, str] = {}
    for line in lines:
        match = only(r"([A-Z][\w ]*): ?(.*?) ?", line, text, TOOL)
        values[match[1]] = match[2]
    if "PFC enabled" not in values or "Willing" not in values:
        raise ParseError(TOOL, text, "'Willing' and 'PFC enabled' of the PFC TLV")
    willing = only("yes|no", values["Willing"], text, TOOL)[0] == "yes"
    return PfcTlv(_priorities(values["PFC enabled"], text), willing)


def _require_daemon(output: Output) -> None:
    if "Failed to connect to lldpad" in f"{output.text}{output.stderr}":
        raise CommandFailed("lldpad does not run")
    if output.rc != 0:
        raise CommandFailed(f"lldptool failed with exit code {output.rc}: {output.complaint}")


def _tlvs(text: str) -> dict[str, list[str]]:
    tlvs: dict[str, list[str]] = {}
    title = ""
    for line in whole_lines(text, TOOL):
        if line.startswith("\t"):
            if not title:
                raise ParseError(TOOL, text, "the title of a TLV before its lines")
            tlvs[title].append(line.strip())
        elif line and (title not in _FREE_TEXT or _TITLE.fullmatch(line)):
            title = only(_TITLE, line, text, TOOL)[0]
            if title in tlvs and "8021Q" not in title and "PFC" in title:
                raise ParseError(TOOL, text, f"{title} once")
            tlvs.setdefault(title, [])
    return tlvs


def _has_pfc(tlvs: dict[str, list[str]]) -> bool:
    return "IEEE 8021QAZ PFC TLV" in tlvs


def _single(tlvs: dict[str, list[str]], title: str) -> str | None:
    return tlvs[title][0] if tlvs.get(title) else None


def _identity(tlvs: dict[str, list[str]], title: str) -> str | None:
    """``MAC: 5c:07:..`` and ``Ifname: Ethernet12``: the kind, then the value."""
    value = _single(tlvs, title)
    return None if value is None else value.partition(": ")[2] or value


def _frame(tlvs: dict[str, list[str]], text: str) -> int | None:
    value = _single(tlvs, "Maximum Frame Size TLV")
    return None if value is None else int(only(r"\d{1,6}", value, text, TOOL)[0])


def _priorities(value: str, text: str) -> frozenset[int]:
    value = value.strip()
    if value == "none":
        return frozenset()
    only(r"[0-7](?:[ ,]+[0-7])*", value, text, TOOL)
    return frozenset(map(int, re.findall("[0-7]", value)))


LLDPTOOL: Final = Reader(
    tool=TOOL,
    commands=(Command((TOOL, "-t", "-n", "-i", "{netdev}"), root=True),),
    parse=parse,
    per=Rail,
)
LLDPTOOL_PFC: Final = Reader(
    tool="lldptool-pfc",
    commands=(Command((TOOL, "-t", "-i", "{netdev}", "-V", "PFC"), root=True),),
    parse=parse_pfc,
    per=Rail,
)

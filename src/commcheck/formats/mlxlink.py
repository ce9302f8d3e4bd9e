"""``mlxlink`` and ``mstlink``: the link as the card's firmware sees it, with error rates (root).

Text is underlined sections with ``key : value`` lines, coloured even into a pipe; JSON holds the
same sections. Values are texts in both. ``15E-255`` is the tool's zero, ``N/A`` is unknown.
"""

from __future__ import annotations

import re
from typing import Any, Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.lines import need, once, only, parse_json, whole_lines
from commcheck.lazy import dataclass, regex
from commcheck.model import Rail

TOOL: Final = "mlxlink"

_BER: Final = regex(r"(\d+(?:\.\d+)?)[eE](-?\d{1,3})")
_NEEDED: Final = {
    "State",
    "Physical state",
    "Speed",
    "Width",
    "FEC",
    "Recommendation",
    "Effective Physical BER",
    "Raw Physical BER",
}
_KEYS: Final = _NEEDED | {"Status Opcode", "Effective Physical Errors", "Link Down Counter"}


@dataclass(frozen=True, slots=True)
class Mlxlink:
    """``None`` is not known, as it is while the link is down. Rates are errors per bit."""

    state: str  # "Active", "Polling", "Disable"
    phys_state: str
    speed: str | None  # "400G", "IB-NDR"
    width: str | None  # "4x"
    fec: str | None
    recommendation: str
    opcode: int | None
    raw_ber: float | None
    effective_ber: float | None
    effective_errors: int | None
    link_downs: int | None


def parse(output: Output) -> Mlxlink:
    """The link; raises ``CommandFailed`` with the tool's own words for its errors."""
    text = output.text
    both = f"{text}\n{output.stderr}"
    if (error := re.search(r"^-E- .*$", both, re.MULTILINE)) is not None:
        raise CommandFailed(f"mlxlink says {error[0][4:160]}")
    if output.rc != 0:
        raise CommandFailed(f"mlxlink failed with exit code {output.rc}: {output.complaint}")
    is_json = text.lstrip().startswith("{")
    values = _json_values(output) if is_json else _text_values(text)
    need(values, _NEEDED, text, TOOL)
    opcode = _number(values.get("Status Opcode"), text)
    return Mlxlink(
        state=only(r"[A-Z][\w ]*", values["State"], text, TOOL)[0],
        phys_state=only(r"[A-Z][\w ]*", values["Physical state"], text, TOOL)[0],
        speed=_known(values["Speed"], r"[\w-]+", text),
        width=_known(values["Width"], r"\d{1,2}x", text),
        fec=_known(values["FEC"], r"\w[ -~]*", text),  # "RS-FEC - (544,514) + PLR" of InfiniBand
        recommendation=only(r"[ -~]+", values["Recommendation"], text, TOOL)[0],
        opcode=opcode,
        raw_ber=_ber(values["Raw Physical BER"], text),
        effective_ber=_ber(values["Effective Physical BER"], text),
        effective_errors=_number(values.get("Effective Physical Errors"), text),
        link_downs=_number(values.get("Link Down Counter"), text),
    )


def _text_values(text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for line in whole_lines(text, TOOL):
        if (match := re.fullmatch(r"(\S.*?) +: (.*)", line)) and match[1] in _KEYS:
            once(values, match[1], match[2].strip(), text, TOOL)
    return values


def _json_values(output: Output) -> dict[str, str]:
    match parse_json(output, TOOL):
        case {"result": {"output": dict(sections)}}:
            pass
        case _:
            raise ParseError(TOOL, output.text, "result.output")
    values: dict[str, str] = {}
    for section in sections.values():
        if isinstance(section, dict):
            for key, value in section.items():
                if isinstance(value, str) and key in _KEYS:
                    once(values, key, value, output.text, TOOL)
    return values


def _known(value: str, pattern: str, text: str) -> str | None:
    return None if value == "N/A" else only(pattern, value, text, TOOL)[0]


def _number(value: Any, text: str) -> int | None:
    return None if value in (None, "N/A") else int(only(r"\d{1,20}", value, text, TOOL)[0])


def _ber(value: str, text: str) -> float | None:
    if value == "N/A":
        return None
    if value == "15E-255":  # what the firmware shows where it counted none
        return 0.0
    match = only(_BER, value, text, TOOL)
    return float(f"{match[1]}e{match[2]}")


MLXLINK: Final = Reader(
    tool=TOOL,
    commands=(Command((TOOL, "-d", "{pci}", "-c", "--json"), timeout_s=15, root=True),),
    parse=parse,
    per=Rail,
)
MSTLINK: Final = Reader(
    tool="mstlink",
    commands=(Command(("mstlink", "-d", "{pci}", "-c", "--json"), timeout_s=15, root=True),),
    parse=parse,
    per=Rail,
)

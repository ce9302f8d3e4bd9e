"""``ethtool --show-fec DEV``: which forward error correction is set, and which one works now."""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.lines import only, whole_lines
from commcheck.lazy import dataclass
from commcheck.model import Rail

TOOL: Final = "ethtool-fec"

_WORDS: Final = r"(?:Auto|Off|BaseR|RS|LLRS|None|Not reported)"


@dataclass(frozen=True, slots=True)
class EthtoolFec:
    """Encodings by the tool's own words: "RS", "LLRS", "BaseR", "Off", "None", "Auto"."""

    device: str
    configured: tuple[str, ...]
    active: tuple[str, ...]


def parse(output: Output) -> EthtoolFec | None:
    """The encodings; None where the driver has no such setting."""
    if output.rc != 0 and re.search("not supported", f"{output.stdout}{output.stderr}", re.I):
        return None
    require_ok(output, "ethtool --show-fec")
    text = output.text
    lines = "\n".join(whole_lines(text, TOOL)) + "\n"
    devices = re.findall(r"^FEC parameters for (\S+):$", lines, re.MULTILINE)
    configured = re.findall(r"^(?:Supported/)?Configured FEC encodings:(.*)$", lines, re.MULTILINE)
    active = re.findall(r"^Active FEC encodings?:(.*)$", lines, re.MULTILINE)
    if not len(devices) == len(configured) == len(active) == 1:
        raise ParseError(TOOL, text, "configured and active FEC of one interface")
    return EthtoolFec(devices[0], _encodings(configured[0], text), _encodings(active[0], text))


def _encodings(value: str, text: str) -> tuple[str, ...]:
    only(rf"(?:\s*{_WORDS})+\s*", value, text, TOOL)
    return tuple(re.findall(_WORDS, value))


ETHTOOL_FEC: Final = Reader(
    tool=TOOL, commands=(Command(("ethtool", "--show-fec", "{netdev}")),), parse=parse, per=Rail
)

"""``/etc/hccn.conf``: the network settings that the NPUs get back when the host starts.

Lines ``key_N=value``; the value is free text that may hold "=" itself.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.lines import whole_lines
from commcheck.lazy import dataclass

TOOL: Final = "hccn.conf"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the file keeps for one NPU; None: nothing."""

    npu: int
    address: ipaddress.IPv4Address | None = None
    netmask: ipaddress.IPv4Address | None = None
    gateway: ipaddress.IPv4Address | None = None
    netdetect: ipaddress.IPv4Address | None = None


HccnConf = tuple[Settings, ...] | None
"""The file by NPU; None where there is no file: nothing comes back after a restart."""


def kept(conf: HccnConf, npu: int) -> Settings:
    """An NPU's settings, empty where the file does not name it."""
    return next((each for each in conf or () if each.npu == npu), Settings(npu))


_KEYS: Final = ("address", "netmask", "gateway", "netdetect")


def parse(output: Output) -> HccnConf:
    """The settings; keys that are not known are left out."""
    if output.rc == 1 and "No such file" in output.complaint:
        return None
    require_ok(output, "reading /etc/hccn.conf")
    text = output.text
    found: dict[int, dict[str, str]] = {}
    for line in whole_lines(text, TOOL) if text else ():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = re.fullmatch(r"([A-Za-z]\w*)_(\d{1,2})\s*=(.*)", line)
        if match is None:
            raise ParseError(TOOL, text, f"lines key_N=value, not {line.strip()[:60]!r}")
        if match[1] in _KEYS:
            mine = found.setdefault(int(match[2]), {})
            if match[1] in mine:
                raise ParseError(TOOL, text, f"{match[1]}_{match[2]} once")
            mine[match[1]] = match[3].strip()
    return tuple(_settings(npu, mine, text) for npu, mine in found.items())


def _settings(npu: int, mine: Mapping[str, str], text: str) -> Settings:
    try:
        return Settings(npu, **{key: ipaddress.IPv4Address(mine[key]) for key in mine})
    except ValueError as error:
        raise ParseError(TOOL, text, f"addresses: {error}") from None


HCCN_CONF: Final = Reader(
    tool=TOOL, commands=(Command(("cat", "/etc/hccn.conf"), root=True),), parse=parse
)

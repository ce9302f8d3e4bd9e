"""``ethtool DEV``: link, speed and modes, of netlink and of ioctl versions.

The two print different orders, so lines are read by key. "Link detected" comes after everything
read here and must be a whole line: cut output is refused.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import CommandFailed, ParseError
from commcheck.lazy import dataclass, regex
from commcheck.model import Rail

TOOL: Final = "ethtool"

_LINE: Final = regex(r"\t([A-Z][A-Za-z -]*): *(.*?) *")
_MODE: Final = regex(r"\t {8,}(\S+) *")
_UNKNOWN: Final = regex(r"Unknown!(?: \(\d+\))?")
_DETECTED: Final = regex(r"(yes|no)(?: \((.*)\))?")
_KEYS: Final = frozenset(
    {
        "Supported link modes",
        "Advertised link modes",
        "Speed",
        "Lanes",
        "Duplex",
        "Auto-negotiation",
        "Port",
        "Link detected",
    }
)


@dataclass(frozen=True, slots=True)
class EthtoolLink:
    """The port as the driver sees it. ``None`` is not known or not said."""

    device: str
    detected: bool
    reason: str | None = None  # why there is no link: "No cable"
    detail: str | None = None  # "Remote side is not ready yet"
    speed_mbits: int | None = None
    lanes: int | None = None
    duplex: str | None = None  # "Full"
    autoneg: bool | None = None
    port: str | None = None  # "FIBRE"
    supported: tuple[str, ...] = ()
    advertised: tuple[str, ...] = ()


def parse(output: Output) -> EthtoolLink:
    """The link; raises ``CommandFailed`` where there is no such interface."""
    text = output.text
    if output.rc == 75 or "No data available" in text:
        # ethtool's own code for "nothing could be read", with five lines of netlink errors.
        raise CommandFailed("ethtool knows no such interface, or its driver tells nothing of it")
    require_ok(output, TOOL)
    devices = re.findall(r"^Settings for (\S+):$", text, re.MULTILINE)
    if len(devices) != 1:
        raise ParseError(TOOL, text, "'Settings for' one interface")
    values = _values(text)
    if "Link detected" not in values or not re.search(r"^\tLink detected: .*\n", text, re.M):
        raise ParseError(TOOL, text, "a whole line 'Link detected'")
    detected = _match(_DETECTED, values["Link detected"][0], text)
    reason, _, detail = (detected[2] or "").partition(", ")
    return EthtoolLink(
        device=devices[0],
        detected=detected[1] == "yes",
        reason=reason or None,
        detail=detail or None,
        speed_mbits=_number(r"(\d+)Mb/s", values.get("Speed"), text),
        lanes=_number(r"(\d+)", values.get("Lanes"), text),
        duplex=_word("Half|Full", values.get("Duplex"), text),
        autoneg=None if (on := _autoneg(values, text)) is None else on == "on",
        port=values["Port"][0] if "Port" in values else None,
        supported=_modes(values.get("Supported link modes")),
        advertised=_modes(values.get("Advertised link modes")),
    )


def _values(text: str) -> dict[str, list[str]]:
    """Key to value lines: a list of link modes goes on over lines of a tab and blanks."""
    values: dict[str, list[str]] = {}
    key = ""
    for line in text.split("\n"):
        if (match := _LINE.fullmatch(line)) is not None:
            key = match[1]
            if key in _KEYS:
                if key in values:
                    raise ParseError(TOOL, text, f"one interface, but {key!r} is there twice")
                values[key] = [match[2]]
        elif key.endswith("link modes") and key in values and (more := _MODE.fullmatch(line)):
            values[key].append(more[1])
    return values


def _autoneg(values: dict[str, list[str]], text: str) -> str | None:
    return _word("on|off", values.get("Auto-negotiation"), text)


def _modes(lines: list[str] | None) -> tuple[str, ...]:
    return tuple(mode for mode in (lines or ()) if re.fullmatch(r"\d+base\S*", mode))


def _word(words: str, lines: list[str] | None, text: str) -> str | None:
    if lines is None or _UNKNOWN.fullmatch(lines[0]):
        return None
    return _match(re.compile(words), lines[0], text)[0]


def _number(pattern: str, lines: list[str] | None, text: str) -> int | None:
    if lines is None or _UNKNOWN.fullmatch(lines[0]):
        return None
    return int(_match(re.compile(pattern), lines[0], text)[1])


def _match(pattern: re.Pattern[str], value: str, text: str) -> re.Match[str]:
    match = pattern.fullmatch(value)
    if match is None:
        raise ParseError(TOOL, text, f"{pattern.pattern}, not {value[:60]!r}")
    return match


ETHTOOL_LINK: Final = Reader(
    tool=TOOL, commands=(Command((TOOL, "{netdev}")),), parse=parse, per=Rail
)

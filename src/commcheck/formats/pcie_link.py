"""PCIe link of an HCA, of the slot above it and the port's rate, from sysfs as grep prints it.

``device`` is a link to the PCI device, so ``device/..`` is the port of the bridge that it sits
in: what that can do is what the slot can. The card's own values come last: output that was cut
lacks one of them.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.lazy import dataclass, regex
from commcheck.model import Rail

TOOL: Final = "sysfs-pcie"

_DEVICE: Final = "/sys/class/infiniband/{hca}/device"
_NAMES: Final = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")
_FILES: Final = (
    "/sys/class/infiniband/{hca}/ports/{port}/rate",
    f"{_DEVICE}/../max_link_speed",
    f"{_DEVICE}/../max_link_width",
    *(f"{_DEVICE}/{name}" for name in _NAMES),
)
_LINE: Final = regex(rf"/\S*?/((?:\.\./)?(?:{'|'.join(_NAMES)}|rate|numa_node)):(.*)")
_SPEED: Final = regex(r"(\d{1,3}(?:\.\d)?) GT/s(?: PCIe)?")
_RATE: Final = regex(r"(\d{1,4}(?:\.\d)?) Gb/sec \(.*\)")


@dataclass(frozen=True, slots=True)
class PcieLink:
    """The link as trained, and what card and slot can do. ``None``: the kernel does not know.

    ``rate_gbits`` means nothing while the port is down.
    """

    speed_gts: float | None
    width: int | None
    max_speed_gts: float | None
    max_width: int | None
    slot_speed_gts: float | None = None
    slot_width: int | None = None
    rate_gbits: float | None = None


def parse(output: Output) -> PcieLink:
    """The link; raises ``CommandFailed`` where sysfs shows none of the HCA."""
    text = output.text
    found: dict[str, str] = {}
    for line in text.splitlines(keepends=True):
        match = _LINE.fullmatch(line.removesuffix("\n"))
        if match is None or match[1] in found or not line.endswith("\n"):
            raise ParseError(TOOL, text, f"one whole line of a file, not {line.strip()[:60]!r}")
        found[match[1]] = match[2]
    if not found and not text.strip() and output.rc in (0, 1, 2):
        # A bus without PCIe links (a virtual one) has none of these files.
        raise CommandFailed("sysfs shows no PCIe link of this HCA")
    if missing := set(_NAMES) - found.keys():
        raise ParseError(TOOL, text, f"{min(missing)} of the HCA")
    return PcieLink(
        speed_gts=_speed(found["current_link_speed"], text),
        width=_width(found["current_link_width"], text),
        max_speed_gts=_speed(found["max_link_speed"], text),
        max_width=_width(found["max_link_width"], text),
        slot_speed_gts=_speed(found.get("../max_link_speed", "Unknown"), text),
        slot_width=_width(found.get("../max_link_width", "0"), text),
        rate_gbits=_rate(found.get("rate"), text),
    )


def _speed(value: str, text: str) -> float | None:
    if value.startswith("Unknown"):
        return None
    return float(_match(_SPEED, value, text)[1])


def _width(value: str, text: str) -> int | None:
    # 0 and 255 are the kernel's PCIE_LNK_WIDTH_RESRV and _UNKNOWN.
    width = int(_match(re.compile(r"\d{1,3}"), value, text)[0])
    if width not in (0, 1, 2, 4, 8, 12, 16, 32, 255):
        raise ParseError(TOOL, text, f"a number of lanes, not {width}")
    return width if 0 < width < 255 else None


def _rate(value: str | None, text: str) -> float | None:
    return None if value is None else float(_match(_RATE, value, text)[1])


def _match(pattern: re.Pattern[str], value: str, text: str) -> re.Match[str]:
    match = pattern.fullmatch(value)
    if match is None:
        raise ParseError(TOOL, text, f"{pattern.pattern}, not {value[:60]!r}")
    return match


# -s: a root port has no bridge above it, and older kernels lack some of the files.
PCIE_LINK: Final = Reader(
    tool=TOOL, commands=(Command(("grep", "-Hs", ".", *_FILES)),), parse=parse, per=Rail
)

"""``ethtool -g DEV``: ring sizes. Old versions print 0 where new ones print n/a."""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.lines import need, once, only, whole_lines
from commcheck.lazy import dataclass
from commcheck.model import Rail

TOOL: Final = "ethtool-ring"

_BLOCKS: Final = {"Pre-set maximums:": "max", "Current hardware settings:": "now"}


@dataclass(frozen=True, slots=True)
class EthtoolRing:
    """Entries of the receive and transmit rings: as they are, and the most there can be."""

    device: str
    rx: int
    tx: int
    rx_max: int
    tx_max: int


def parse(output: Output) -> EthtoolRing:
    """The ring sizes of one interface."""
    require_ok(output, "ethtool -g")
    text = output.text
    devices, block = [], ""
    values: dict[str, str] = {}
    for line in whole_lines(text, TOOL):
        if head := re.fullmatch(r"Ring parameters for (\S+):", line):
            devices.append(head[1])
        elif line in _BLOCKS:
            block = _BLOCKS[line]
        elif match := re.fullmatch(r"(RX|TX):\t+(\S+)", line):
            once(values, f"{block} {match[1]}", match[2], text, TOOL)
    need(values, {"max RX", "max TX", "now RX", "now TX"}, text, TOOL)
    if len(devices) != 1:
        raise ParseError(TOOL, text, "'Ring parameters for' one interface")
    sizes = {key: int(only(r"\d{1,7}", value, text, TOOL)[0]) for key, value in values.items()}
    return EthtoolRing(
        devices[0], sizes["now RX"], sizes["now TX"], sizes["max RX"], sizes["max TX"]
    )


ETHTOOL_RING: Final = Reader(
    tool=TOOL, commands=(Command(("ethtool", "-g", "{netdev}")),), parse=parse, per=Rail
)

"""Where every PCI device of a host hangs: its bridges, from the root complex down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.lazy import dataclass, regex

TOOL: Final = "pci-tree"

_LINE: Final = regex(r"([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])=\S*?devices/(\S+)")


@dataclass(frozen=True, slots=True)
class PciTree:
    """Devices by address (``0000:18:00.0``), each with the way to it, the device itself last."""

    ways: Mapping[str, tuple[str, ...]]

    def has(self, address: str) -> bool:
        """True where the device is there."""
        return address.lower() in self.ways

    def hangs_on_root(self, address: str) -> bool | None:
        """True where no bridge is between the device and its root complex; None: not there."""
        way = self.ways.get(address.lower())
        return None if way is None else len(way) <= _ROOT_AND_DEVICE


_ROOT_AND_DEVICE: Final = 2


def parse(output: Output) -> PciTree:
    """What ``/sys/bus/pci/devices`` links to. Raises ``ParseError`` where nothing is there."""
    require_ok(output, TOOL)
    found = {
        match[1]: tuple(match[2].split("/"))
        for line in output.text.split("\n")
        if (match := _LINE.fullmatch(line))
    }
    if not found:
        raise ParseError(TOOL, output.text, "'0000:18:00.0=../../../devices/pci0000:15/...'")
    return PciTree(found)


PCI_TREE: Final = Reader(
    tool=TOOL,
    commands=(
        Command(
            ("find", "/sys/bus/pci/devices/", "-mindepth", "1", "-maxdepth", "1",
             "-printf", "%f=%l\\n")
        ),
    ),
    parse=parse,
)  # fmt: skip

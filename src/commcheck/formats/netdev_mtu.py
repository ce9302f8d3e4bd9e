"""``/sys/class/net/DEV/mtu``: one number on one line."""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.lazy import dataclass
from commcheck.model import Rail

TOOL: Final = "sysfs-mtu"


@dataclass(frozen=True, slots=True)
class NetdevMtu:
    """MTU of a netdev in bytes, without the Ethernet header."""

    mtu_bytes: int


def parse(output: Output) -> NetdevMtu:
    """The MTU. The line end must be there: a cut ``9000`` would else read as 900."""
    require_ok(output, "cat")
    numbers = re.findall(r"^(\d{1,6})\n", output.text, re.MULTILINE)
    if len(numbers) != 1:
        raise ParseError(TOOL, output.text, "one number on a line of its own")
    return NetdevMtu(int(numbers[0]))


NETDEV_MTU: Final = Reader(
    tool=TOOL, commands=(Command(("cat", "/sys/class/net/{netdev}/mtu")),), parse=parse, per=Rail
)

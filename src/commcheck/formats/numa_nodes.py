"""``/sys/devices/system/node/online``: how many NUMA nodes a host has."""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.lines import only, whole_lines
from commcheck.lazy import regex

TOOL: Final = "numa-nodes"

_LIST: Final = regex(r"\d{1,4}(?:-\d{1,4})?(?:,\d{1,4}(?:-\d{1,4})?)*")


def parse(output: Output) -> frozenset[int]:
    """The nodes that are online."""
    require_ok(output, "cat")
    lines = whole_lines(output.text, TOOL)
    if len(lines) != 1:
        raise ParseError(TOOL, output.text, "one line")
    nodes = numbers(only(_LIST, lines[0], output.text, TOOL)[0])
    if not nodes:
        raise ParseError(TOOL, output.text, "a list of nodes")
    return nodes


def numbers(ranges: str) -> frozenset[int]:
    """``0-2,5`` as the numbers in it."""
    found: set[int] = set()
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


NUMA_NODES: Final = Reader(
    tool=TOOL, commands=(Command(("cat", "/sys/devices/system/node/online")),), parse=parse
)

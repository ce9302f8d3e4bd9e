"""``show_gids [HCA]``: the used GIDs of all RoCE ports, by the vendor's script.

The last line counts them, so that a table that was cut is missed there. Plain InfiniBand shows
"v1" too, and no netdev.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.lines import only, whole_lines
from commcheck.lazy import dataclass, regex

TOOL: Final = "show_gids"

_ROW: Final = regex(
    r"([\w.-]+)\t(\d+)\t(\d+)\t([0-9a-f]{4}(?::[0-9a-f]{4}){7})\t([\d.]*) *\t+v([12])\t([\w.-]*)"
)


@dataclass(frozen=True, slots=True)
class GidRow:
    """One used GID; ``netdev`` is None on InfiniBand."""

    hca: str
    port: int
    index: int
    gid: str
    ipv4: str | None
    roce_version: int
    netdev: str | None


def parse(output: Output) -> tuple[GidRow, ...]:
    """The rows, as many as the script counted."""
    require_ok(output, TOOL)
    text = output.text
    rows: list[GidRow] = []
    counts = []
    for line in whole_lines(text, TOOL):
        if count := re.fullmatch(r"n_gids_found=(\d+)", line):
            counts.append(int(count[1]))
        elif not re.match(r"DEV\tPORT|---\t----|ls: ", line):
            match = only(_ROW, line, text, TOOL)
            hca, port, index, gid, ipv4, version, netdev = match.groups()
            rows.append(
                GidRow(hca, int(port), int(index), gid, ipv4 or None, int(version), netdev or None)
            )
    if counts != [len(rows)] or len({(row.hca, row.port, row.index) for row in rows}) != len(rows):
        raise ParseError(TOOL, text, "as many GIDs as the last line counts")
    return tuple(rows)


SHOW_GIDS: Final = Reader(tool=TOOL, commands=(Command((TOOL,)),), parse=parse)

"""``ibdev2netdev [-v]``: which netdev belongs to which port. Lists the vendor's own HCAs only."""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed
from commcheck.formats.lines import only, whole_lines
from commcheck.lazy import dataclass, regex

TOOL: Final = "ibdev2netdev"

_LINE: Final = regex(
    r"(?:[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] ([\w.-]+) .*? |([\w.-]+) )"
    r"port (\d+)(?: \(\w+ *\))? <?=+> ([\w.-]+)(?: \((Up|Down)\))?"
)


@dataclass(frozen=True, slots=True)
class PortNetdev:
    """A port and its netdev; ``is_up`` is the netdev's, None where the old layout tells none."""

    hca: str
    port: int
    netdev: str
    is_up: bool | None = None


def parse(output: Output) -> tuple[PortNetdev, ...]:
    """The map; raises ``CommandFailed`` where the tool finds no RDMA core or no HCA."""
    text = output.text
    if output.rc != 0 or not text.strip():
        raise CommandFailed(
            "ibdev2netdev finds no HCA of its vendor, or no RDMA core", "read rdma link instead"
        )
    found = []
    for line in whole_lines(text, TOOL):
        match = only(_LINE, line, text, TOOL)
        is_up = None if match[5] is None else match[5] == "Up"
        found.append(PortNetdev(match[1] or match[2], int(match[3]), match[4], is_up))
    return tuple(found)


IBDEV2NETDEV: Final = Reader(tool=TOOL, commands=(Command((TOOL,)),), parse=parse)

"""``df -Pk /dev/shm``: the memory that processes share by name, and how much of it is free."""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.lines import only, whole_lines
from commcheck.lazy import dataclass, regex

TOOL: Final = "df-shm"

_ROW: Final = regex(r"(\S+) +(\d{1,15}) +(\d{1,15}) +(\d{1,15}) +(?:\d{1,3}%|-) +(/\S*)")


@dataclass(frozen=True, slots=True)
class Shm:
    """In KiB, and the mount that it is part of: ``/dev/shm``, or another where that is none."""

    total_kib: int
    free_kib: int
    mount: str


def parse(output: Output) -> Shm:
    """The one row below the heading, in the form of POSIX."""
    require_ok(output, "df")
    lines = whole_lines(output.text, TOOL)
    if len(lines) != 2 or not lines[0].startswith("Filesystem "):
        raise ParseError(TOOL, output.text, "a heading and one row")
    row = only(_ROW, lines[1], output.text, TOOL)
    total, used, free = int(row[2]), int(row[3]), int(row[4])
    if used > total or free > total:
        raise ParseError(TOOL, output.text, "no more used or free than there is")
    return Shm(total, free, row[5])


DF_SHM: Final = Reader(tool=TOOL, commands=(Command(("df", "-Pk", "/dev/shm")),), parse=parse)  # noqa: S108 - looked at

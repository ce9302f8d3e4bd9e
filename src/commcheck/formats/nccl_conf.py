"""``/etc/nccl.conf``: NCCL variables that every job of the host begins with (NCCL 2.x user guide).

Lines ``NAME=value``; ``#`` begins a comment. A job's own environment wins over it.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, clean
from commcheck.errors import CommandFailed
from commcheck.formats.lines import whole_lines

TOOL: Final = "nccl-conf"

PATH: Final = "/etc/nccl.conf"


def parse(output: Output) -> tuple[tuple[str, str], ...]:
    """(name, value) pairs in the file's order; none where there is no such file."""
    if output.rc != 0:
        if "No such file or directory" in clean(output.stderr):
            return ()
        raise CommandFailed(f"{PATH} cannot be read: {output.complaint}")
    text = output.text
    # An editor may leave the last line without its end: then it is whole all the same.
    lines = whole_lines(text if text.endswith("\n") else f"{text}\n", TOOL) if text else []
    pairs = []
    for line in lines:
        if match := re.fullmatch(r"\s*(NCCL_[A-Z0-9_]+)\s*=\s*(\S+)\s*", line.partition("#")[0]):
            pairs.append((match[1], match[2]))
    return tuple(pairs)


NCCL_CONF: Final = Reader(tool=TOOL, commands=(Command(("cat", PATH)),), parse=parse)

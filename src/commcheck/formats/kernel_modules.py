"""Loaded kernel modules, as ``lsmod`` or ``/proc/modules`` list them."""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader, first_of
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.lazy import regex

_LINE: Final = regex(r"(\w+) +\d+ +(?:-?\d+|-)(?: .*)?")


def parse(output: Output) -> frozenset[str]:
    """Names of the loaded modules. An empty list is no answer: the NIC's driver is one of them."""
    require_ok(output, "listing the kernel modules")
    text = output.text
    names = set()
    for line in text.splitlines(keepends=True):
        if re.match(r"Module +Size +Used by", line) or not line.strip():
            continue
        match = _LINE.fullmatch(line.removesuffix("\n"))
        if match is None or not line.endswith("\n"):
            raise ParseError("lsmod", text, f"name, size and users, not {line.strip()[:60]!r}")
        names.add(match[1])
    if not names:
        raise ParseError("lsmod", text, "at least one kernel module")
    return frozenset(names)


LSMOD: Final = Reader(tool="lsmod", commands=(Command(("lsmod",)),), parse=parse)
PROC_MODULES: Final = Reader(
    tool="proc-modules", commands=(Command(("cat", "/proc/modules")),), parse=parse
)
KERNEL_MODULES: Final = first_of(LSMOD, PROC_MODULES)
"""Where kmod is not installed, as in many containers, the kernel's own list is read."""

PEER_MODULES: Final = ("nvidia_peermem", "nv_peer_mem")
"""Either lets the NIC reach GPU memory; the second is the name before driver 470."""

"""Version of the kernel module that drives an HCA, from sysfs as grep prints it.

A vendor's package has one; the kernel's own drivers have none and come with the kernel.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.lazy import dataclass, regex
from commcheck.model import Rail

TOOL: Final = "sysfs-module-version"

_LINE: Final = regex(r"/\S*/module/version:(\S{1,64})\n")


@dataclass(frozen=True, slots=True)
class ModuleVersion:
    """``None``: the driver is the kernel's own."""

    version: str | None


def parse(output: Output) -> ModuleVersion:
    """The version; raises ``CommandFailed`` where sysfs could not be read at all."""
    text = output.text
    if not text.strip():
        if output.rc not in (0, 1, 2):
            raise CommandFailed(f"grep failed with exit code {output.rc}: {output.complaint}")
        return ModuleVersion(None)
    match = _LINE.fullmatch(text)
    if match is None:
        raise ParseError(TOOL, text, "one whole line with a version")
    return ModuleVersion(match[1])


MODULE_VERSION: Final = Reader(
    tool=TOOL,
    commands=(
        Command(("grep", "-Hs", ".", "/sys/class/infiniband/{hca}/device/driver/module/version")),
    ),
    parse=parse,
    per=Rail,
)

"""Releases of CANN and of the NPUs' firmware, from the files that their installers leave."""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.lines import whole_lines
from commcheck.lazy import dataclass, regex

TOOL: Final = "cann-version"

_PLACE: Final = "/usr/local/Ascend"
_ARCHS: Final = ("aarch64-linux", "x86_64-linux")
_PACKAGES: Final = ("ascend-toolkit", "nnae", "nnrt")
_FILES: Final = (
    *(
        f"{_PLACE}/{package}/latest/{arch}/ascend_{package.removeprefix('ascend-')}_install.info"
        for package in _PACKAGES
        for arch in _ARCHS
    ),
    f"{_PLACE}/firmware/version.info",
)
_LINE: Final = regex(
    rf"{_PLACE}/(ascend-toolkit|nnae|nnrt|firmware)/\S+:[Vv]ersion=([A-Za-z0-9_.+-]{{1,64}})\s*"
)


@dataclass(frozen=True, slots=True)
class Releases:
    """``cann``: of each package on the host, by its name. ``firmware``: None: not told."""

    cann: tuple[tuple[str, str], ...]
    firmware: str | None


def parse(output: Output) -> Releases:
    """What is installed; nothing where jobs bring their own in images."""
    text = output.text
    if output.rc not in (0, 1, 2):
        raise CommandFailed(f"grep failed with exit code {output.rc}: {output.complaint}")
    found: dict[str, str] = {}
    for line in whole_lines(text, TOOL) if text else ():
        match = _LINE.fullmatch(line)
        if match is None or match[1] in found:
            raise ParseError(TOOL, text, "a package and its version, each once")
        found[match[1]] = match[2]
    firmware = found.pop("firmware", None)
    return Releases(tuple(sorted(found.items())), firmware)


CANN: Final = Reader(
    tool=TOOL, commands=(Command(("grep", "-His", "-m1", "^version=", *_FILES)),), parse=parse
)

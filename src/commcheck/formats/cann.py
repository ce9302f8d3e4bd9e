"""Releases of CANN and of the NPUs' firmware, from the files that their installers leave.

Source: CANN installation guides, "Querying the Software Package Version", and since 8.5 those of
/usr/local/Ascend/cann.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.lines import whole_lines
from commcheck.lazy import dataclass, regex

TOOL: Final = "cann-version"

_PLACE: Final = "/usr/local/Ascend"
_ARCHS: Final = ("aarch64-linux", "x86_64-linux")
_INFO: Final = (
    # Since 8.5, where toolkit and operators are two packages in one folder.
    *((f"cann/{arch}/ascend_toolkit_install.info", "cann") for arch in _ARCHS),
    *((f"cann/{arch}/ascend_ops_install.info", "cann-ops") for arch in _ARCHS),
    *(
        (f"{package}/latest/{inner}ascend_{package.removeprefix('ascend-')}_install.info", package)
        for package in ("ascend-toolkit", "nnae", "nnrt")
        for inner in ("", *(f"{arch}/" for arch in _ARCHS))
    ),
    ("firmware/version.info", "firmware"),
)
_PACKAGES: Final = {f"{_PLACE}/{file}": package for file, package in _INFO}
_LINE: Final = regex(r"(/[^:]+):version=([A-Za-z0-9_.+-]{1,64})\s*", re.IGNORECASE)


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
    seen: set[str] = set()
    for line in whole_lines(text, TOOL) if text else ():
        match = _LINE.fullmatch(line)
        package = None if match is None else _PACKAGES.get(match[1])
        if match is None or package is None or match[1] in seen:
            raise ParseError(TOOL, text, "a package and its version, each file once")
        seen.add(match[1])
        # Some releases have the folder of the architecture, or a link of its name, and some not.
        if found.setdefault(package, match[2]) != match[2]:
            raise ParseError(TOOL, text, f"one version of {package}")
    firmware = found.pop("firmware", None)
    return Releases(tuple(sorted(found.items())), firmware)


CANN: Final = Reader(
    tool=TOOL, commands=(Command(("grep", "-His", "-m1", "^version=", *_PACKAGES)),), parse=parse
)

"""``/proc/driver/nvidia/version``: the loaded NVIDIA kernel module, and whether it is the open one.

The kernel's own line tells what is loaded; the module file on disk may be a newer one.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.lazy import dataclass, regex

TOOL: Final = "nvidia-version"

_LINE: Final = regex(
    r"^NVRM version: NVIDIA UNIX (?:(Open )|(?:x86_64|aarch64|ppc64le) )?Kernel Module "
    r"(?:for (?:x86_64|aarch64|ppc64le) )? *"
    r"(\d+(?:\.\d+)+) .*\n",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class NvidiaVersion:
    """The module that is loaded."""

    version: str  # "550.54.15"
    is_open: bool  # the open kernel modules, which export GPU memory as DMA-BUF


def parse(output: Output) -> NvidiaVersion:
    """The module's flavour and version."""
    require_ok(output, "cat")
    lines: list[tuple[str, str]] = _LINE.findall(output.text)
    if len(lines) != 1:
        raise ParseError(TOOL, output.text, "one whole line 'NVRM version:'")
    flavour, version = lines[0]
    return NvidiaVersion(version, bool(flavour))


NVIDIA_VERSION: Final = Reader(
    tool=TOOL, commands=(Command(("cat", "/proc/driver/nvidia/version")),), parse=parse
)

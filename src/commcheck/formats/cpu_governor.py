"""``/sys/devices/system/cpu/cpufreq``: by which rule the kernel picks the clock of each CPU."""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed
from commcheck.formats.lines import only, whole_lines
from commcheck.lazy import regex

TOOL: Final = "cpu-governor"

_GOVERNOR: Final = regex(r"performance|powersave|schedutil|ondemand|conservative|userspace")
_NOTHING: Final = 1
"""grep's exit code where no line was found; 2 with -s where there is no such folder."""


def parse(output: Output) -> frozenset[str]:
    """The governors in use; none where the kernel does not set the clocks at all."""
    if not output.text:
        if output.rc in (_NOTHING, 2):
            return frozenset()
        raise CommandFailed(f"grep failed with exit code {output.rc}: {output.complaint}")
    lines = whole_lines(output.text, TOOL)
    return frozenset(only(_GOVERNOR, line, output.text, TOOL)[0] for line in lines)


SYSFS_GOVERNOR: Final = Reader(
    tool=TOOL,
    commands=(
        Command(
            ("grep", "-rhs", ".", "/sys/devices/system/cpu/cpufreq", "--include=scaling_governor")
        ),
    ),
    parse=parse,
)

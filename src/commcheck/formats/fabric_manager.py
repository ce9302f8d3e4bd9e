"""``nv-fabricmanager --version`` and the NVSwitches that the driver has: two small facts."""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, clean, require_ok
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.lines import only, whole_lines
from commcheck.lazy import regex

VERSION_TOOL: Final = "nv-fabricmanager"
SWITCHES_TOOL: Final = "nvswitch"

_VERSION: Final = regex(r"Fabric Manager version is : (\d{3,4}(?:\.\d{1,4}){1,3})")
_BUILD: Final = regex(r"(?:Build Info - .*\n?)?")  # 610 leaves that line open
_DEVICES: Final = "/proc/driver/nvidia-nvswitch/devices"
_DEVICE: Final = regex(rf"/\S*{_DEVICES[1:]}/([0-9a-f]{{4}}:[0-9a-f:.]{{7}})")


def parse_version(output: Output) -> str:
    """The release, like a driver's: ``550.54.15``. Younger ones tell their build below it."""
    require_ok(output, VERSION_TOOL)
    line, end, build = output.text.partition("\n")
    if not end or not _BUILD.fullmatch(build):
        raise ParseError(VERSION_TOOL, output.text, "a whole line, and at most one of the build")
    return only(_VERSION, line, output.text, VERSION_TOOL)[1]


def parse_switches(output: Output) -> tuple[str, ...]:
    """PCI addresses of the NVSwitches; none where the driver has no folder of them."""
    if "No such file" in clean(output.stderr) and not output.text:
        return ()
    if output.rc != 0:
        raise CommandFailed(f"find failed with exit code {output.rc}: {output.complaint}")
    if not output.text:
        return ()
    lines = whole_lines(output.text, SWITCHES_TOOL)
    found = [only(_DEVICE, line, output.text, SWITCHES_TOOL)[1] for line in lines]
    if len(set(found)) != len(found):
        raise ParseError(SWITCHES_TOOL, output.text, "each NVSwitch once")
    return tuple(sorted(found))


FABRIC_MANAGER_VERSION: Final = Reader(
    tool=VERSION_TOOL, commands=(Command((VERSION_TOOL, "--version")),), parse=parse_version
)
# Baseboards with the NVSwitches of A100 and H100 have them on PCI; those of Blackwell do not.
NVSWITCHES: Final = Reader(
    tool=SWITCHES_TOOL,
    commands=(Command(("find", _DEVICES, "-mindepth", "1", "-maxdepth", "1")),),
    parse=parse_switches,
)

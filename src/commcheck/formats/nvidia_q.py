"""``nvidia-smi -q``: the lines of each GPU with their headings, for readers of some of them.

``--query-gpu`` lacks much of it, and an older driver refuses a column that it does not know. Here
it only lacks the line.
"""

from __future__ import annotations

from typing import Final

from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.lines import whole_lines
from commcheck.formats.nvidia_query import UNKNOWN
from commcheck.formats.nvidia_warnings import without_warnings
from commcheck.lazy import dataclass, regex

TOOL: Final = "nvidia-smi-q"
COMMAND: Final = Command(("nvidia-smi", "-q"), timeout_s=60.0)
UNTOLD: Final = UNKNOWN | {"Not Supported", "Unknown Error"}

_GPU: Final = regex(r"GPU ([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")
_COUNT: Final = regex(r"Attached GPUs +: (\d{1,3})")
_INDENT: Final = 4


@dataclass(frozen=True, slots=True)
class GpuLines:
    """One GPU, by its PCI address with a domain of eight digits.

    ``lines``: the way to each value and the value: (("Fabric", "Health", "Bandwidth"), "Full").
    Headings have none: "".
    """

    pci: str
    lines: tuple[tuple[tuple[str, ...], str], ...]

    def values(self, *way: str) -> list[str]:
        """What stands at that place: as many values as it is there."""
        return [value for name, value in self.lines if name == way and value]


def parse(output: Output) -> tuple[GpuLines, ...]:
    """The GPUs, by index: the order in which they are printed."""
    output = without_warnings(output)
    require_ok(output, "nvidia-smi -q")
    text = output.text
    gpus: list[tuple[str, list[tuple[tuple[str, ...], str]]]] = []
    counts: list[str] = []
    way: tuple[str, ...] = ()
    for line in whole_lines(text, TOOL):
        name, _, value = (each.strip() for each in line.strip().partition(" : "))
        depth, rest = divmod(len(line) - len(line.lstrip(" ")), _INDENT)
        if match := _GPU.fullmatch(line):
            gpus.append((match[1].lower(), []))
            way = ()
        elif match := _COUNT.fullmatch(line):
            counts.append(match[1])
        elif not name or not depth or rest:
            way = ()
        elif gpus:
            way = (*way[: depth - 1], name)
            gpus[-1][1].append((way, value))
    if counts != [str(len(gpus))] or not gpus:
        raise ParseError(TOOL, text, "as many GPUs as are attached")
    return tuple(GpuLines(pci, tuple(lines)) for pci, lines in gpus)

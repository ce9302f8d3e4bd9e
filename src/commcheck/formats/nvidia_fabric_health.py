"""``nvidia-smi -q``: how healthy each GPU's registration with the NVLink fabric is.

``--query-gpu`` has no column for it, and ``-d`` no word (nvidia-smi manual of 590). Younger drivers
have the block; HGX boards and cards without a fabric say N/A to all of it.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.lines import once, only, whole_lines
from commcheck.formats.nvidia_query import UNKNOWN
from commcheck.lazy import dataclass, regex

TOOL: Final = "nvidia-smi-q"

_GPU: Final = regex(r"GPU [0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]")
_COUNT: Final = regex(r"Attached GPUs +: (\d{1,3})")
_VALUE: Final = regex(r"[A-Za-z][A-Za-z/ ]{0,60}")
_UNTOLD: Final = UNKNOWN | {"Not Supported", "Unknown Error"}


@dataclass(frozen=True, slots=True)
class FabricHealth:
    """One GPU. ``told``: the block's lines that say something, as ("Bandwidth", "Full")."""

    index: int
    told: tuple[tuple[str, str], ...]


def parse(output: Output) -> tuple[FabricHealth, ...]:
    """The GPUs, by index: the order in which they are printed."""
    require_ok(output, "nvidia-smi -q")
    text = output.text
    gpus: list[dict[str, str]] = []
    counts: list[str] = []
    section = part = ""
    for line in whole_lines(text, TOOL):
        words = line.strip()
        name, colon, value = (each.strip() for each in words.partition(" : "))
        depth = len(line) - len(line.lstrip(" "))
        if _GPU.fullmatch(line):
            gpus.append({})
            section = part = ""
        elif match := _COUNT.fullmatch(line):
            counts.append(match[1])
        elif depth in (0, 4):
            section, part = (name, "") if words and depth else ("", "")
        elif depth == 8:
            part = name
        elif gpus and colon and (section, part) == ("Fabric", "Health"):
            once(gpus[-1], name, only(_VALUE, value, text, TOOL)[0], text, TOOL)
    if counts != [str(len(gpus))] or not gpus:
        raise ParseError(TOOL, text, "as many GPUs as are attached")
    if section == "Fabric":
        raise ParseError(TOOL, text, "a whole last GPU")
    return tuple(
        FabricHealth(at, tuple(each for each in gpu.items() if each[1] not in _UNTOLD))
        for at, gpu in enumerate(gpus)
    )


NVIDIA_FABRIC_HEALTH: Final = Reader(
    tool=TOOL, commands=(Command(("nvidia-smi", "-q"), timeout_s=60.0),), parse=parse
)

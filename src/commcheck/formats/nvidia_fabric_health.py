"""``nvidia-smi -q``: how healthy each GPU's registration with the NVLink fabric is.

``--query-gpu`` has no column for it, and ``-d`` no word (nvidia-smi manual of 590). Younger drivers
have the block; HGX boards and cards without a fabric say N/A to all of it.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Output
from commcheck.errors import ParseError
from commcheck.formats import nvidia_q
from commcheck.formats.lines import once, only
from commcheck.formats.nvidia_q import COMMAND, TOOL, UNTOLD, GpuLines
from commcheck.lazy import dataclass, regex

_VALUE: Final = regex(r"[A-Za-z][A-Za-z/ ]{0,60}")


@dataclass(frozen=True, slots=True)
class FabricHealth:
    """One GPU. ``told``: the block's lines that say something, as ("Bandwidth", "Full")."""

    index: int
    told: tuple[tuple[str, str], ...]


def parse(output: Output) -> tuple[FabricHealth, ...]:
    """The GPUs, by index."""
    gpus = nvidia_q.parse(output)
    if any(way[0] == "Fabric" for way, _ in gpus[-1].lines[-1:]):
        raise ParseError(TOOL, output.text, "a whole last GPU")
    return tuple(FabricHealth(at, _health(gpu, output.text)) for at, gpu in enumerate(gpus))


def _health(gpu: GpuLines, text: str) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for way, value in gpu.lines:
        if way[:-1] == ("Fabric", "Health") and value:
            once(found, way[-1], only(_VALUE, value, text, TOOL)[0], text, TOOL)
    return tuple(each for each in found.items() if each[1] not in UNTOLD)


NVIDIA_FABRIC_HEALTH: Final = Reader(tool=TOOL, commands=(COMMAND,), parse=parse)

"""``nvidia-smi topo -m``: the CPUs and NUMA nodes that each GPU belongs to, as the driver sees it.

The columns behind the matrix. Some drivers lack the NUMA column, some write ``N/A``.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import ParseError
from commcheck.formats.lines import only
from commcheck.formats.nvidia_topo import WAY, table
from commcheck.lazy import dataclass, regex

TOOL: Final = "nvidia-smi-affinity"

UNTOLD: Final = "N/A"

_RANGES: Final = regex(r"\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?)*")


@dataclass(frozen=True, slots=True)
class GpuPlace:
    """One GPU: its CPUs and NUMA nodes as ranges ("0-47,96-143", "0"), or "N/A".

    None: this driver has no such column.
    """

    gpu: str
    cpus: str
    numa: str | None


def parse(output: Output) -> tuple[GpuPlace, ...]:
    """The GPUs in the order of the matrix."""
    columns, below = table(output, TOOL)
    text = output.text
    if "CPU Affinity" not in columns:
        raise ParseError(TOOL, text, "a column CPU Affinity")
    behind = columns.index("CPU Affinity")
    gpus = [name for name in columns[:behind] if re.fullmatch(r"GPU\d+", name)]
    places: dict[str, GpuPlace] = {}
    for name, *cells in below:
        if name not in gpus:
            continue
        if name in places or len(cells) <= behind:
            raise ParseError(TOOL, text, f"a whole row {name}, once")
        for cell in cells[:behind]:
            only(WAY, cell, text, TOOL)
        has_numa = columns[behind + 1 : behind + 2] == ["NUMA Affinity"]
        numa = _ranges(cells[behind + 1], text) if has_numa and len(cells) > behind + 1 else None
        places[name] = GpuPlace(name, _ranges(cells[behind], text), numa)
    if list(places) != gpus:
        raise ParseError(TOOL, text, "a row for each GPU")
    return tuple(places.values())


def _ranges(cell: str, text: str) -> str:
    return UNTOLD if cell in (UNTOLD, "") else only(_RANGES, cell, text, TOOL)[0]


NVIDIA_AFFINITY: Final = Reader(
    tool=TOOL, commands=(Command(("nvidia-smi", "topo", "-m"), timeout_s=20),), parse=parse
)

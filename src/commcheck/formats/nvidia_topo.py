"""``nvidia-smi topo -m``: how close GPUs, NICs and CPUs are to each other.

A table of tabs with underlined headings; NICs are ``NIC0`` with a legend of their names, or stand
under their own names in older drivers. The legend ends the output, so a table that was cut lacks
it.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.lines import only, whole_lines
from commcheck.formats.nvidia_warnings import without_warnings
from commcheck.lazy import dataclass, regex

TOOL: Final = "nvidia-smi-topo"

WAY: Final = regex(r"X|SYS|NODE|PHB|PXB|PIX|NV\d{1,2}|N/A")
_AFFINITY: Final = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")


@dataclass(frozen=True, slots=True)
class NvidiaTopo:
    """``links``: (GPU, other, word), other a GPU or the name of an HCA: ``("GPU0", "mlx5_0",
    "PIX")``. The words from near to far: NV#, PIX, PXB, PHB, NODE, SYS.
    """

    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    links: tuple[tuple[str, str, str], ...]

    def of(self, gpu: str) -> dict[str, str]:
        """A GPU's way to every NIC."""
        nics = set(self.nics)
        return {other: word for each, other, word in self.links if each == gpu and other in nics}


def table(output: Output, tool: str) -> tuple[list[str], list[list[str]]]:
    """The headings, and the cells of every line below them, the legend's too."""
    output = without_warnings(output)
    require_ok(output, "nvidia-smi topo -m")
    lines = whole_lines(output.text, tool)
    if not any(line.startswith("Legend:") for line in lines):
        raise ParseError(tool, output.text, "the matrix and its legend")
    at = next((n for n, line in enumerate(lines) if re.match(r"\s*GPU0\b", line)), None)
    if at is None:
        raise ParseError(tool, output.text, "a heading that begins with GPU0")
    headings = [cell for cell in map(str.strip, lines[at].split("\t")) if cell]
    return headings, [list(map(str.strip, line.split("\t"))) for line in lines[at + 1 :]]


def parse(output: Output) -> NvidiaTopo:
    """The matrix; raises ``ParseError`` where a row has not as many words as there are columns."""
    headings, below = table(output, TOOL)
    text = output.text
    columns = [cell for cell in headings if cell not in _AFFINITY]
    names = dict(re.findall(r"^  (NIC\d+): (\S+)$", text, re.MULTILINE))
    rows: dict[str, list[str]] = {}
    for name, *cells in below:
        if name not in columns:
            continue
        if name in rows:
            raise ParseError(TOOL, text, f"a row {name} once")
        rows[name] = [only(WAY, cell, text, TOOL)[0] for cell in cells[: len(columns)]]
    if set(rows) != set(columns) or any(len(row) != len(columns) for row in rows.values()):
        raise ParseError(TOOL, text, "a row for each column, with a word for each")
    numbered = [name for name in columns if re.fullmatch(r"NIC\d+", name)]
    if any(name not in names for name in numbered):
        raise ParseError(TOOL, text, "the names of the NICs in the legend")
    if any(
        (name == other) != (word == "X")
        for name in columns
        for other, word in zip(columns, rows[name], strict=True)
    ):
        raise ParseError(TOOL, text, "X for each device and itself, and there alone")
    gpus = tuple(name for name in columns if re.fullmatch(r"GPU\d+", name))
    nics = tuple(names.get(name, name) for name in columns if name not in gpus)
    links = tuple(
        (gpu, names.get(other, other), word)
        for gpu in gpus
        for other, word in zip(columns, rows[gpu], strict=True)
        if other != gpu
    )
    return NvidiaTopo(gpus, nics, links)


NVIDIA_TOPO: Final = Reader(
    tool=TOOL, commands=(Command(("nvidia-smi", "topo", "-m"), timeout_s=20),), parse=parse
)

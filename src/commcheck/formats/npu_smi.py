"""``npu-smi info`` and its topology: the NPUs that the driver knows, and how they are linked.

The table has two rows for each chip; below stands another one of processes, which is not counted,
and which releases up to 22 do not have.
Ids may have gaps. A module of an A3 has two chips under one NPU id.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.lines import only, whole_lines
from commcheck.lazy import dataclass, regex

TOOL: Final = "npu-smi"
TOPO_TOOL: Final = "npu-smi-topo"

HEALTH: Final = ("OK", "Warning", "Alarm", "Critical", "UNKNOWN")


@dataclass(frozen=True, slots=True)
class NpuChip:
    """One chip: ids as npu-smi numbers, ``name`` as 910B3, ``pci`` in small letters.

    ``physical``: the id that ``hccn_tool`` and ``/dev/davinciN`` know it by.
    """

    npu: int
    chip: int
    name: str
    health: str
    pci: str
    physical: int


@dataclass(frozen=True, slots=True)
class NpuSmi:
    """The tool's release and every chip."""

    version: str
    chips: tuple[NpuChip, ...]


_WITHOUT_PROCESSES: Final = 22
"""The last release whose table ends with its chips: as printed in documents of 21.0.2 to 22.0.4."""
_FIRST: Final = regex(r"\| (\d{1,5}) {2,}(\S+)\s+\| (\w+)\s+\| .*\|")
_SECOND: Final = regex(
    r"\| (\d)(?: +(\d{1,2}))? {2,}\| ([0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]) +\| .*\|"
)


def parse(output: Output) -> NpuSmi:
    """The upper table; raises ``ParseError`` where a chip has not both of its rows."""
    require_ok(output, "npu-smi info")
    text = output.text
    lines = whole_lines(text, TOOL)
    version = re.search(r"Version: (?=\S)((\d*)\S*)", text)
    heads = [at for at, line in enumerate(lines) if re.match(r"\| (?:NPU|Chip) ", line)]
    is_old = version is not None and version[2] != "" and int(version[2]) <= _WITHOUT_PROCESSES
    if is_old and len(heads) == 2 and lines[-1].startswith("+"):
        heads.append(len(lines))
    if version is None or len(heads) < 3:
        raise ParseError(TOOL, text, "the table of NPUs and the table of processes")
    rows = [line for line in lines[heads[1] + 1 : heads[2]] if not line.startswith("+")]
    if len(rows) % 2:
        raise ParseError(TOOL, text, "two rows for each chip")
    chips = []
    for upper, lower in zip(rows[::2], rows[1::2], strict=True):
        one, two = only(_FIRST, upper, text, TOOL), only(_SECOND, lower, text, TOOL)
        if one[3] not in HEALTH:
            raise ParseError(TOOL, text, f"health {', '.join(HEALTH)}, not {one[3]!r}")
        npu, chip = int(one[1]), int(two[1])
        # Without a column of its own the NPU's id is the physical one.
        physical = int(two[2] or npu)
        chips.append(NpuChip(npu, chip, one[2], one[3], two[3].lower(), physical))
    if len({(each.npu, each.chip) for each in chips}) != len(chips) or not chips:
        raise ParseError(TOOL, text, "every chip once")
    return NpuSmi(version[1], tuple(chips))


@dataclass(frozen=True, slots=True)
class NpuTopo:
    """``links``: (NPU, other, word) for every pair both ways: HCCS, HCCS_SW, SIO (two
    chips of one module), PIX, PXB, PHB, SYS, NA, UB."""

    npus: tuple[str, ...]
    links: tuple[tuple[str, str, str], ...]


def parse_topo(output: Output) -> NpuTopo:
    """The matrix; raises ``ParseError`` where a row has not as many words as there are columns."""
    require_ok(output, "npu-smi info -t topo")
    text = output.text
    lines = whole_lines(text, TOPO_TOOL)
    head = re.compile(r"\s*(?:NPU|Phy-ID)\d+\s+\w")
    at = next((n for n, line in enumerate(lines) if head.match(line)), None)
    if at is None or not any(line.startswith("Legend:") for line in lines):
        raise ParseError(TOPO_TOOL, text, "a heading of NPUs, the matrix and its legend")
    columns = re.findall(r"NPU\d+|Phy-ID\d+", lines[at])
    rows: dict[str, list[str]] = {}
    for line in lines[at + 1 :]:
        name, *cells = line.split() or [""]
        if name not in columns:
            continue
        words = cells[: len(columns)]
        if name in rows or len(words) != len(columns):
            raise ParseError(TOPO_TOOL, text, f"a row {name} once, with a word for each NPU")
        rows[name] = [
            only(r"X|HCCS(?:_SW)?|SIO|PIX|PXB|PHB|SYS|NA|UB", w, text, TOPO_TOOL)[0] for w in words
        ]
    if list(rows) != columns or any(
        (name == other) != (word == "X")
        for name in columns
        for other, word in zip(columns, rows[name], strict=True)
    ):
        raise ParseError(TOPO_TOOL, text, "a row for each NPU, X for itself and there alone")
    links = tuple(
        (name, other, word)
        for name in columns
        for other, word in zip(columns, rows[name], strict=True)
        if name != other
    )
    return NpuTopo(tuple(columns), links)


NPU_SMI: Final = Reader(
    tool=TOOL, commands=(Command(("npu-smi", "info"), timeout_s=30),), parse=parse, varies=True
)
NPU_TOPO: Final = Reader(
    tool=TOPO_TOOL,
    commands=(Command(("npu-smi", "info", "-t", "topo"), timeout_s=30),),
    parse=parse_topo,
)

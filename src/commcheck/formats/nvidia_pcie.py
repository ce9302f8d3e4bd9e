"""``nvidia-smi --query-gpu=... --format=csv``: the PCIe link of each GPU, and how busy it is.

The first line names the columns, so they are read by name: drivers rename the rarer ones. A GPU
whose link generation is low may only be asleep; that is why its load is asked with it.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.nvidia_query import COLUMNS
from commcheck.formats.nvidia_warnings import without_warnings
from commcheck.lazy import dataclass, regex

TOOL: Final = "nvidia-smi-query"

FIELDS: Final = (
    "index",
    "name",
    "pci.bus_id",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "utilization.gpu",
)
_REQUIRED: Final = FIELDS[:-1]
_UNKNOWN: Final = frozenset(
    {"[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[GPU requires reset]"}
)
_IDLE: Final = 0x1  # nvmlClocksEventReasonGpuIdle
_BUS: Final = regex(r"[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-7]")


@dataclass(frozen=True, slots=True)
class PcieGpu:
    """One GPU. ``None`` is not known. ``max`` is what GPU and slot can do together."""

    index: int
    name: str
    pci: str  # with a domain of eight digits
    gen: int | None
    max_gen: int | None
    width: int | None
    max_width: int | None
    load_percent: int | None = None
    is_idle: bool | None = None


def parse(output: Output) -> tuple[PcieGpu, ...]:
    """The GPUs, by index."""
    output = without_warnings(output)
    require_ok(output, "nvidia-smi --query-gpu")
    text = output.text
    header, *rows = text.split("\n")
    names = [re.sub(r" \[.*\]$", "", name) for name in header.split(", ")]
    if not set(_REQUIRED) <= set(names) or len(set(names)) != len(names):
        raise ParseError(TOOL, text, f"a first line with {', '.join(_REQUIRED)}")
    if not rows or rows.pop() != "":
        raise ParseError(TOOL, text, "a whole last line")
    gpus = tuple(_gpu(dict(_pairs(names, row, text)), text) for row in rows)
    if not gpus or [gpu.index for gpu in gpus] != list(range(len(gpus))):
        raise ParseError(TOOL, text, "GPUs from 0 without a gap")
    return gpus


def _pairs(names: list[str], row: str, text: str) -> list[tuple[str, str]]:
    values = row.split(", ")
    if len(values) != len(names):
        raise ParseError(TOOL, text, f"{len(names)} values in each row, not {row[:60]!r}")
    return list(zip(names, values, strict=True))


def _gpu(row: dict[str, str], text: str) -> PcieGpu:
    index = _number(row["index"], text)
    if index is None or not row["name"] or not _BUS.fullmatch(row["pci.bus_id"]):
        raise ParseError(TOOL, text, "index, name and bus id of each GPU")
    return PcieGpu(
        index=index,
        name=row["name"],
        pci=row["pci.bus_id"].lower(),
        gen=_number(row["pcie.link.gen.current"], text, 9),
        max_gen=_number(row["pcie.link.gen.max"], text, 9),
        width=_number(row["pcie.link.width.current"], text, 32),
        max_width=_number(row["pcie.link.width.max"], text, 32),
        load_percent=_number(row.get("utilization.gpu", "[N/A]").removesuffix(" %"), text, 100),
        is_idle=_is_idle(row, text),
    )


def _is_idle(row: dict[str, str], text: str) -> bool | None:
    """By the reasons for low clocks, where they were asked: two names, by the driver's age."""
    for name in ("clocks_event_reasons.active", "clocks_throttle_reasons.active"):
        if (value := row.get(name)) is not None and value not in _UNKNOWN:
            if not re.fullmatch(r"0x[0-9A-Fa-f]{16}", value):
                raise ParseError(TOOL, text, f"a mask of {name}, not {value[:60]!r}")
            return bool(int(value, 16) & _IDLE)
    return None


def _number(value: str, text: str, high: int = 999) -> int | None:
    if value in _UNKNOWN:
        return None
    if not re.fullmatch(r"\d{1,3}", value) or int(value) > high:
        raise ParseError(TOOL, text, f"numbers up to {high}, not {value[:60]!r}")
    return int(value)


NVIDIA_PCIE: Final = Reader(
    tool=TOOL,
    commands=(
        # All that any check asks of a GPU, in one call: every start of the tool is slow.
        Command(("nvidia-smi", f"--query-gpu={','.join(COLUMNS)}", "--format=csv"), timeout_s=30.0),
    ),
    parse=parse,
)

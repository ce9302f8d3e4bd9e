"""``nvidia-smi --query-remapped-rows=...``: memory rows that each GPU replaced by spare ones.

GPUs from A100 on have spare rows; others print no row here, or values that are not told.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import ParseError
from commcheck.formats.nvidia_query import Row, rows
from commcheck.lazy import dataclass

TOOL: Final = "nvidia-smi-remap"

COLUMNS: Final = (
    "gpu_bus_id",
    "remapped_rows.correctable",
    "remapped_rows.uncorrectable",
    "remapped_rows.pending",
    "remapped_rows.failure",
)
_BUS: Final = r"[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"


@dataclass(frozen=True, slots=True)
class RemapGpu:
    """One GPU; None: not told. Rows by why they were replaced."""

    pci: str  # with a domain of eight digits
    correctable: int | None
    uncorrectable: int | None
    pending: bool | None
    failure: bool | None


def parse(output: Output) -> tuple[RemapGpu, ...]:
    """The GPUs that have spare rows."""
    gpus = tuple(_gpu(row) for row in rows(output, TOOL, frozenset(COLUMNS)))
    if len({gpu.pci for gpu in gpus}) != len(gpus):
        raise ParseError(TOOL, output.text, "each GPU once")
    return gpus


def _gpu(row: Row) -> RemapGpu:
    return RemapGpu(
        pci=row.must(_BUS, "gpu_bus_id").lower(),
        correctable=row.count("remapped_rows.correctable"),
        uncorrectable=row.count("remapped_rows.uncorrectable"),
        pending=row.yes("remapped_rows.pending"),
        failure=row.yes("remapped_rows.failure"),
    )


NVIDIA_REMAP: Final = Reader(
    tool=TOOL,
    commands=(
        Command(
            ("nvidia-smi", f"--query-remapped-rows={','.join(COLUMNS)}", "--format=csv"),
            timeout_s=30.0,
        ),
    ),
    parse=parse,
)

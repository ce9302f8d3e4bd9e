"""``nvidia-smi --query-gpu=fabric...``: what younger drivers (from 535) tell beside the rest.

A call of its own, since an older driver refuses all of it for a column that it does not know.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.formats.nvidia_query import Row, in_order, rows
from commcheck.lazy import dataclass

TOOL: Final = "nvidia-smi-fabric"

COLUMNS: Final = ("index", "fabric.state", "fabric.status", "protected_memory.total")
_STATES: Final = r"(?:state\s+)?(Completed|In Progress|Not Started|Not Supported)"


@dataclass(frozen=True, slots=True)
class FabricGpu:
    """One GPU; None: not told.

    ``state``: of its registration with the NVLink fabric. ``status``: "Success" or an error.
    ``protected_mib``: memory of confidential computing; 0 where that is off.
    """

    index: int
    state: str | None
    status: str | None
    protected_mib: int | None


def parse(output: Output) -> tuple[FabricGpu, ...]:
    """The GPUs, by index."""
    gpus = tuple(_gpu(row) for row in rows(output, TOOL, frozenset(COLUMNS[:3])))
    in_order([gpu.index for gpu in gpus], output.text, TOOL)
    return gpus


def _gpu(row: Row) -> FabricGpu:
    state = row.match(_STATES, "fabric.state")
    status = row.match(r"(?:status\s+)?([A-Z][A-Za-z/ -]{1,60})", "fabric.status")
    protected = row.match(r"(\d{1,9}) MiB", "protected_memory.total")
    return FabricGpu(
        index=int(row.must(r"\d{1,3}", "index")),
        state=None if state is None or state[1] == "Not Supported" else state[1],
        status=None if status is None else status[1],
        protected_mib=None if protected is None else int(protected[1]),
    )


NVIDIA_FABRIC: Final = Reader(
    tool=TOOL,
    commands=(
        Command(("nvidia-smi", f"--query-gpu={','.join(COLUMNS)}", "--format=csv"), timeout_s=30.0),
    ),
    parse=parse,
)

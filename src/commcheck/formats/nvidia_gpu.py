"""``nvidia-smi --query-gpu=... --format=csv``: modes, memory errors, power and clocks of each GPU.

One call tells all of it, together with the PCIe link, since every start of the tool is slow.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.formats.nvidia_query import COLUMNS, Row, in_order, rows
from commcheck.lazy import dataclass

TOOL: Final = "nvidia-smi-gpu"

_REQUIRED: Final = frozenset({"index", "name", "pci.bus_id"})
_REASONS: Final = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_MODES: Final = "Default|Exclusive_Thread|Exclusive_Process|Prohibited"


@dataclass(frozen=True, slots=True)
class NvidiaGpu:
    """One GPU; None is not told by this driver for this GPU.

    ``slowed_by``: the mask of ``nvmlClocksEventReasons``. ``uncorrected``: memory errors since the
    driver was loaded. ``enforced_watts``: the lowest of all limits in force.
    """

    index: int
    name: str
    pci: str  # with a domain of eight digits
    load_percent: int | None = None
    persistence: bool | None = None
    compute_mode: str | None = None
    mig: bool | None = None
    ecc: bool | None = None
    uncorrected: int | None = None
    retirement_pending: bool | None = None
    temperature_c: int | None = None
    limit_watts: float | None = None
    default_watts: float | None = None
    enforced_watts: float | None = None
    slowed_by: int | None = None
    needs_reset: bool | None = None

    @property
    def label(self) -> str:
        """Its name in reports."""
        return f"gpu{self.index}"


def parse(output: Output) -> tuple[NvidiaGpu, ...]:
    """The GPUs, by index."""
    gpus = tuple(_gpu(row) for row in rows(output, TOOL, _REQUIRED))
    in_order([gpu.index for gpu in gpus], output.text, TOOL)
    return gpus


def _gpu(row: Row) -> NvidiaGpu:
    mode = row.match(_MODES, "compute_mode")
    reasons = row.match(r"0x[0-9A-Fa-f]{16}", *_REASONS)
    return NvidiaGpu(
        index=int(row.must(r"\d{1,3}", "index")),
        name=row.must(r".+", "name"),
        pci=row.must(r"[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]", "pci.bus_id").lower(),
        load_percent=row.count("utilization.gpu"),
        persistence=row.yes("persistence_mode"),
        compute_mode=None if mode is None else mode[0],
        mig=row.yes("mig.mode.current"),
        ecc=row.yes("ecc.mode.current"),
        uncorrected=row.count("ecc.errors.uncorrected.volatile.total"),
        retirement_pending=row.yes("retired_pages.pending"),
        temperature_c=row.count("temperature.gpu"),
        limit_watts=row.watts("power.limit", "gpu.power.requested_limit"),
        default_watts=row.watts("power.default_limit", "gpu.power.default_limit"),
        enforced_watts=row.watts("enforced.power.limit", "gpu.power.current_limit"),
        slowed_by=None if reasons is None else int(reasons[0], 16),
        needs_reset=True if row.needs_reset else None,
    )


NVIDIA_GPU: Final = Reader(
    tool=TOOL,
    commands=(
        Command(("nvidia-smi", f"--query-gpu={','.join(COLUMNS)}", "--format=csv"), timeout_s=30.0),
    ),
    parse=parse,
)

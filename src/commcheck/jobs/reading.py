"""What a collective benchmark printed, whatever printed it: rows, ranks, footers and failures.

Readers fill these and decide nothing; the judge reads these and no text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Final

from commcheck.lazy import dataclass

MIB: Final = 1 << 20
GIB: Final = 1 << 30


class State(StrEnum):
    """How a run ended, as far as its text tells. Only ``COMPLETE`` and the table part of
    ``COMPLETE_THEN_CRASHED`` can be judged as bandwidth."""

    COMPLETE = "complete"  # all footers are there
    COMPLETE_THEN_CRASHED = "complete_then_crashed"
    CRASHED = "crashed"  # rows, no footers, a failure
    TRUNCATED = "truncated"  # rows, no footers, no failure
    TIMEOUT = "timeout"  # the tool's own limit or the launcher's
    LAUNCH_FAILED = "launch_failed"  # no table, a failure
    NO_TABLE = "no_table"  # neither
    NOT_MULTI_RANK = "not_multi_rank"  # several ranks 0: built without MPI, or another MPI


@dataclass(frozen=True, slots=True)
class Iterations:
    """Times of single iterations, in microseconds (nccl-tests ``-I 1``).

    ``times_us`` and ``by_process_us`` (process, iteration) are only in the JSON output.
    """

    min_us: float
    max_us: float
    p99_us: float
    cv_percent: float
    times_us: tuple[float, ...] = ()
    by_process_us: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Half:
    """One placement of one size. Bandwidths in GB/s (1e9 bytes).

    ``wrong``: elements with wrong values, None where nothing was verified. ``delta``: the largest
    deviation that layouts before 2.13 print instead; it is no count, and non-zero is normal.
    """

    time_us: float
    algbw: float
    busbw: float
    wrong: float | None = None
    delta: float | None = None
    iterations: Iterations | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One size. ``doubt`` says which of its numbers contradict each other, "" where none do."""

    size: int  # bytes
    count: int | None
    dtype: str
    redop: str
    root: int | None
    out_of_place: Half | None
    in_place: Half | None
    doubt: str = ""

    @property
    def halves(self) -> tuple[Half, ...]:
        """The placements that were measured."""
        return tuple(half for half in (self.out_of_place, self.in_place) if half is not None)

    @property
    def best(self) -> float:
        """The better busbw of both placements, GB/s."""
        return max(half.busbw for half in self.halves)


@dataclass(frozen=True, slots=True)
class Rank:
    """One "Rank" line: which GPU of which host."""

    rank: int
    host: str
    device: int
    name: str  # of the GPU
    group: int = 0
    pid: int | None = None
    pci: str = ""  # as printed: "0000:0f:00", "0x0f" before 2.14


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that a tool, a library or a launcher said went wrong. ``slug`` names the kind.

    ``consequence``: it follows from another failure (unwinding frames, a launcher's summary).
    """

    slug: str
    text: str
    line: int
    host: str | None = None
    rank: int | None = None
    detail: Mapping[str, object] = field(default_factory=dict)
    consequence: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One run of a collective benchmark, as its output tells it.

    ``rows`` may be trusted; ``doubtful`` rows contradict themselves, and are kept for the report.
    ``collective`` is None where the text does not say. ``problems`` are the reader's own integrity
    tests that failed (rows missing, mean not as printed, ...): such a run is not judged.
    ``log`` holds the NCCL or HCCL lines found in between, for a log audit.
    """

    tool: str  # "nccl-tests", "rccl-tests", "hccl_test"
    state: State
    layout: str = ""
    version: str = ""  # of the tool, where it says it
    library: str = ""  # "2.27.7"
    collective: str | None = None
    nranks: int | None = None
    ranks: tuple[Rank, ...] = ()
    rows: tuple[Row, ...] = ()
    doubtful: tuple[Row, ...] = ()
    expected_rows: int | None = None
    validation: bool | None = None
    out_of_bounds: int | None = None
    avg_busbw: float | None = None
    failed_ranks: tuple[int, ...] = ()  # ranks that reported wrong data (hccl_test)
    iterations: int | None = None
    warmup: int | None = None
    tables: int = 1
    split: bool = False  # NCCL_TESTS_SPLIT: several groups
    slowest: bool = False  # its times are those of the slowest rank (-a 3)
    reduced_to: int | None = None  # maxBytes, lowered by the tool for want of memory
    json_path: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    log: tuple[str, ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the Rank lines, in order."""
        return tuple(dict.fromkeys(rank.host for rank in self.ranks))

    @property
    def group_ranks(self) -> int | None:
        """Ranks that talk to each other: all, or rank 0's group where the run was split."""
        return sum(rank.group == 0 for rank in self.ranks) if self.split else self.nranks

    @property
    def group_hosts(self) -> tuple[str, ...]:
        """The hosts of rank 0's group."""
        return tuple(dict.fromkeys(rank.host for rank in self.ranks if rank.group == 0))

    @property
    def peak(self) -> float | None:
        """The best busbw of all trusted rows, GB/s."""
        return max((row.best for row in self.rows), default=None)

    @property
    def first_failure(self) -> Failure | None:
        """The failure that is not known to follow from another."""
        own = [failure for failure in self.failures if not failure.consequence]
        return next(iter(own or self.failures), None)

    @property
    def wrong(self) -> dict[int, tuple[float | None, float | None]]:
        """Sizes with wrong elements: counts out of place and in place."""
        found = {}
        for row in (*self.rows, *self.doubtful):
            pair = tuple(half.wrong if half else None for half in (row.out_of_place, row.in_place))
            if any(pair):
                found[row.size] = (pair[0], pair[1])
        return found


# --- arithmetic ---------------------------------------------------------------------------------

COLLECTIVES: Final = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "reduce",
    "alltoall",
    "alltoallv",
    "sendrecv",
    "scatter",
    "gather",
    "hypercube",
)


def factor(collective: str, nranks: int) -> float:
    """busbw / algbw. Source: nccl-tests doc/PERFORMANCE.md and the tests' own sources."""
    if collective == "all_reduce":
        return 2 * (nranks - 1) / nranks
    if collective in ("broadcast", "reduce", "sendrecv", "hypercube"):
        return 1.0
    return (nranks - 1) / nranks


def element_bytes(dtype: str) -> int | None:
    """Bytes of one element, by the names of nccl-tests and hccl_test; None: unknown."""
    return _BYTES.get(dtype)


_BYTES: Final[Mapping[str, int]] = {
    **dict.fromkeys(("int8", "uint8", "char", "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2"), 1),
    **dict.fromkeys(("half", "bfloat16", "float16"), 2),
    **dict.fromkeys(("int32", "uint32", "float", "int"), 4),
    **dict.fromkeys(("int64", "uint64", "double"), 8),
}


def median(values: Sequence[float]) -> float:
    """The middle value; raises ``ValueError`` on none."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def size_text(size: int) -> str:
    """A size as nccl-tests' options write it: ``8 GiB``."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            value = size / unit
            return (
                f"{value:.0f} {name}" if abs(value - round(value)) < 0.01 else f"{value:.1f} {name}"
            )
    return f"{size} B"

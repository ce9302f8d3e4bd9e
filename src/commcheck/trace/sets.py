"""What a device does in a window: computing, communication and copies, as sets of nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from commcheck.lazy import dataclass
from commcheck.trace import names
from commcheck.trace.intervals import Span, clip, subtract, union
from commcheck.trace.names import POINT_TO_POINT, Kind
from commcheck.trace.store import Device, Trace
from commcheck.trace.windows import Window

Row = tuple[int, int, int, int]
"""Start, end, code, index of a device event."""


@dataclass(frozen=True, slots=True)
class Sets:
    """K, C, M of one window, and of C the parts that are of a kind of their own."""

    compute: list[Span]
    comm: list[Span]
    mem: list[Span]
    pipeline: list[Span]  # send and receive
    collective: list[Span]  # C without them


def rows_of(device: Device, events: Iterable[int]) -> list[Row]:
    """The events in the order of their begin."""
    start, end, code = device.start, device.end, device.code
    order = sorted(events, key=start.__getitem__)
    return [(start[index], end[index], code[index], index) for index in order]


def is_pipeline(trace: Trace, device: Device, code: int, index: int) -> bool:
    """True for send and receive: they wait for a neighbour."""
    moved = device.transfers.get(index)
    kind = moved[0].kind if moved else names.collective(trace.codes[code].name)
    return kind in POINT_TO_POINT


def sets_of(trace: Trace, device: Device, rows: Sequence[Row], start: int, end: int) -> Sets:
    """The sets of a window from the events that may reach into it."""
    kinds = [code.kind for code in trace.codes]
    computes = [kind is Kind.COMPUTE for kind in kinds]
    compute = [(row[0], row[1]) for row in rows if computes[row[2]]]
    parts: dict[Kind, list[Span]] = {kind: [] for kind in Kind}
    pipeline: list[Span] = []
    collective: list[Span] = []
    for at, until, code, index in (row for row in rows if not computes[row[2]]):
        kind = kinds[code]
        parts[kind].append((at, until))
        if kind is Kind.COMM or kind is Kind.OPERATOR:
            waits = is_pipeline(trace, device, code, index)
            (pipeline if waits else collective).append((at, until))
    comm = clip(union(parts[Kind.COMM]), start, end)
    waiting = clip(union(pipeline), start, end)
    return Sets(
        compute=clip(union(compute), start, end),
        comm=comm,
        mem=clip(union(parts[Kind.MEM]), start, end),
        pipeline=waiting,
        # Rows that are unions already do not tell their parts: there, all but the waiting.
        collective=subtract(comm, waiting)
        if parts[Kind.OPERATOR]
        else clip(union(collective), start, end),
    )


def sets_in(
    trace: Trace, device: Device, window: Window, rows: list[Row], over: list[Row]
) -> tuple[Sets, list[Row]]:
    """The sets of a window, and the events that reach beyond it, for the next one."""
    here = over + rows
    beyond = [
        (max(start, window.end), end, code, index)
        for start, end, code, index in here
        if end > window.end
    ]
    return sets_of(trace, device, here, window.start, window.end), beyond

"""What a device does in a window: computing, communication and copies, as sets of nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from commcheck.lazy import dataclass
from commcheck.trace.intervals import Span, clip, subtract, union
from commcheck.trace.names import Kind
from commcheck.trace.roles import Role, Roles
from commcheck.trace.store import Device, Trace
from commcheck.trace.windows import Window

Row = tuple[int, int, int, int]
"""Start, end, code, index of a device event."""


@dataclass(frozen=True, slots=True)
class Sets:
    """K, C, M of one window, and C by what its groups are for."""

    compute: list[Span]
    comm: list[Span]
    mem: list[Span]
    roles: Mapping[Role, list[Span]]


def rows_of(device: Device, events: Iterable[int]) -> list[Row]:
    """The events in the order of their begin."""
    start, end, code = device.start, device.end, device.code
    order = sorted(events, key=start.__getitem__)
    return [(start[index], end[index], code[index], index) for index in order]


def sets_of(trace: Trace, roles: Roles, rows: Sequence[Row], start: int, end: int) -> Sets:
    """The sets of a window from the events that may reach into it."""
    kinds = [code.kind for code in trace.codes]
    computes = [kind is Kind.COMPUTE for kind in kinds]
    compute = [(row[0], row[1]) for row in rows if computes[row[2]]]
    parts: dict[Kind, list[Span]] = {kind: [] for kind in Kind}
    by_role: dict[Role, list[Span]] = {}
    for at, until, code, index in (row for row in rows if not computes[row[2]]):
        kind = kinds[code]
        parts[kind].append((at, until))
        if kind is Kind.COMM or kind is Kind.OPERATOR:
            by_role.setdefault(roles.of(code, index), []).append((at, until))
    comm = clip(union(parts[Kind.COMM]), start, end)
    if len(by_role) == 1:
        told = dict.fromkeys(by_role, comm)
    else:
        told = {role: clip(union(spans), start, end) for role, spans in by_role.items()}
        if parts[Kind.OPERATOR]:
            # Rows that are unions already do not tell their parts: all but what is told apart.
            apart = union(chain.from_iterable(told[role] for role in told if role != Role.OTHER))
            told[Role.OTHER] = subtract(comm, apart)
    return Sets(
        clip(union(compute), start, end), comm, clip(union(parts[Kind.MEM]), start, end), told
    )


def sets_in(
    trace: Trace, roles: Roles, window: Window, rows: list[Row], over: list[Row]
) -> tuple[Sets, list[Row]]:
    """The sets of a window, and the events that reach beyond it, for the next one."""
    here = over + rows
    beyond = [
        (max(start, window.end), end, code, index)
        for start, end, code, index in here
        if end > window.end
    ]
    return sets_of(trace, roles, here, window.start, window.end), beyond

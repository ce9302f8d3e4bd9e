"""From a trace to what one rank's steps are made of: every definition in one place."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

from commcheck.lazy import dataclass
from commcheck.trace import names
from commcheck.trace.collectives import calls_of, link_records, moved_of
from commcheck.trace.facts import Lane, RankFacts, Step
from commcheck.trace.intervals import Span, clip, intersect, length, longest, subtract, union
from commcheck.trace.lanes import label_of, lanes_of
from commcheck.trace.names import POINT_TO_POINT, Kind
from commcheck.trace.store import Device, Trace
from commcheck.trace.windows import Window, windows

UNLINKED_MOST = 0.1
"""With more device events than this without their launch, waiting for launches is not known."""


@dataclass(frozen=True, slots=True)
class Sets:
    """K, C, M of one window, and of C the parts that are of a kind of their own."""

    compute: list[Span]
    comm: list[Span]
    mem: list[Span]
    pipeline: list[Span]  # send and receive
    collective: list[Span]  # C without them


def measure(trace: Trace) -> tuple[RankFacts, ...]:
    """The facts of every device in a trace that has steps on it, busiest first."""
    link_records(trace)
    found = [
        _measure_device(trace, name, device)
        for name, device in trace.devices.items()
        if len(device.start)
    ]
    return tuple(sorted(found, key=lambda facts: -sum(step.compute_ns for step in facts.steps)))


def _measure_device(trace: Trace, name: str, device: Device) -> RankFacts:
    found, outside = windows(trace, device)
    unlinked = device.launch_start.count(-1)
    knows_launches = unlinked <= UNLINKED_MOST * len(device.start)
    steps = []
    over: list[_Row] = []
    forwards = _by_thread(trace) if _gathers(trace, device) else {}
    for window in found:
        rows = _rows(device, window.events)
        sets, over = _sets(trace, device, window, rows, over)
        wait = _host_wait(trace, device, rows) if knows_launches and trace.layout != "cpu" else None
        steps.append(_step(trace, device, window, sets, rows, wait, forwards))
    calls = calls_of(trace, device, found)
    return RankFacts(
        file=trace.file,
        rank=trace.rank,
        device=name,
        layout=trace.layout,
        host=trace.host,
        world=trace.world,
        backend=trace.backend,
        library=trace.library,
        framework=names.framework(trace.annotations),
        steps=tuple(steps),
        moved=moved_of(calls),
        calls=calls,
        lanes=_lanes(trace, device, found),
        lanes_of=_middle(found).name,
        outside=outside,
        unlinked=unlinked,
        records=len(trace.records),
        notes=_notes(trace, steps, outside, unlinked, len(device.start)),
    )


_NEVER: Final = 1 << 62

_Row = tuple[int, int, int, int]
"""Start, end, code, index of a device event."""


def _rows(device: Device, events: Iterable[int]) -> list[_Row]:
    """The events in the order of their begin."""
    start, end, code = device.start, device.end, device.code
    order = sorted(events, key=start.__getitem__)
    return [(start[index], end[index], code[index], index) for index in order]


def is_pipeline(trace: Trace, device: Device, code: int, index: int) -> bool:
    """True for send and receive: they wait for a neighbour."""
    moved = device.transfers.get(index)
    kind = moved[0].kind if moved else names.collective(trace.codes[code].name)
    return kind in POINT_TO_POINT


def sets_of(trace: Trace, device: Device, rows: Sequence[_Row], start: int, end: int) -> Sets:
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


def _sets(
    trace: Trace, device: Device, window: Window, rows: list[_Row], over: list[_Row]
) -> tuple[Sets, list[_Row]]:
    """The sets of a window, and the events that reach beyond it, for the next one."""
    here = over + rows
    beyond = [
        (max(start, window.end), end, code, index)
        for start, end, code, index in here
        if end > window.end
    ]
    return sets_of(trace, device, here, window.start, window.end), beyond


def _step(
    trace: Trace,
    device: Device,
    window: Window,
    sets: Sets,
    rows: list[_Row],
    host_wait_ns: int | None,
    forwards: dict[int, list[Span]],
) -> Step:
    exposed = subtract(sets.comm, sets.compute)
    busy = union(sets.compute + sets.comm)
    mem_extra = length(subtract(sets.mem, busy))
    whole = window.end - window.start
    forward = _forward(trace, device, rows, forwards)
    counts: Counter[Kind] = Counter()
    for code, count in Counter(row[2] for row in rows).items():
        counts[trace.codes[code].kind] += count
    comm_kernels = counts[Kind.OPERATOR] or counts[Kind.COMM]
    return Step(
        name=window.name,
        start=window.start,
        end=window.end,
        host_ns=window.host_ns,
        compute_ns=length(sets.compute),
        comm_ns=length(sets.comm),
        mem_ns=length(sets.mem),
        overlapped_ns=length(intersect(sets.comm, sets.compute)),
        exposed_ns=length(exposed),
        exposed_strict_ns=length(subtract(exposed, sets.mem)),
        exposed_judged_ns=length(subtract(sets.collective, sets.compute)),
        bubble_ns=length(subtract(sets.pipeline, sets.compute)),
        longest_blank_ns=longest(exposed),
        mem_extra_ns=mem_extra,
        idle_ns=whole - length(busy) - mem_extra,
        host_wait_ns=host_wait_ns,
        kernels=(counts[Kind.TASK] or counts[Kind.COMPUTE]) + comm_kernels,
        comm_kernels=comm_kernels,
        forward_ns=forward[0],
        gather_ns=forward[1],
        gather_exposed_ns=forward[2],
    )


def _host_wait(trace: Trace, device: Device, rows: list[_Row]) -> int:
    """Gaps on the busiest compute stream whose later kernel was launched only within them.

    The end of the launch call counts, not its begin: a call that is under way when the kernel
    before it ends has not queued anything yet.
    """
    stream_of = [code.stream if code.kind is Kind.COMPUTE else "" for code in trace.codes]
    streams: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        streams[stream_of[row[2]]].append(row)
    streams.pop("", None)
    if not streams:
        return 0
    busiest = max(streams.values(), key=lambda mine: sum(row[1] - row[0] for row in mine))
    launch_end = device.launch_end
    waited, before = 0, busiest[0][1]
    for start, end, _, index in busiest[1:]:
        if start > before and launch_end[index] > before:
            waited += start - before
        if end > before:
            before = end
    return waited


def _gathers(trace: Trace, device: Device) -> bool:
    """True where the device gathers at all: else nothing in the forward pass can wait for it."""
    told = {moved[0].kind for moved in device.transfers.values()}
    named = {names.collective(code.name) for code in trace.codes if code.kind is Kind.COMM}
    return "allgather" in told | named


def _by_thread(trace: Trace) -> dict[int, list[Span]]:
    """The forward annotations of each thread of the host."""
    spans: dict[int, list[Span]] = defaultdict(list)
    for each in trace.forwards:
        spans[each.thread].append((each.start, each.end))
    return {thread: union(mine) for thread, mine in spans.items()}


def _forward(
    trace: Trace, device: Device, rows: list[_Row], forwards: dict[int, list[Span]]
) -> tuple[int | None, int | None, int | None]:
    """Length of the forward pass on the device, all-gather in it, and of that the exposed part.

    All None where nothing is gathered in it.

    Of the forward pass is what the annotation's own thread launches within it: autograd launches
    the backward pass from another.
    """
    inside: list[_Row] = []
    gathers: list[Span] = []
    for row in rows if forwards else ():
        index = row[3]
        spans = forwards.get(device.thread[index])
        launch = device.launch_start[index]
        if not spans or launch < 0:
            continue
        place = bisect_right(spans, (launch, _NEVER)) - 1
        if place < 0 or launch >= spans[place][1]:
            continue
        inside.append(row)
        code = trace.codes[row[2]]
        if code.kind is Kind.COMM:
            moved = device.transfers.get(index)
            if (moved[0].kind if moved else names.collective(code.name)) == "allgather":
                gathers.append((row[0], row[1]))
    if not gathers:
        return None, None, None
    start, end = min(row[0] for row in inside), max(row[1] for row in inside)
    compute = union((row[0], row[1]) for row in rows if trace.codes[row[2]].kind is Kind.COMPUTE)
    gathered = clip(union(gathers), start, end)
    return end - start, length(gathered), length(subtract(gathered, compute))


def _middle(found: Sequence[Window]) -> Window:
    """The window whose length is nearest to the median."""
    middle = median(window.end - window.start for window in found)
    return min(found, key=lambda window: abs(window.end - window.start - middle))


def _lanes(trace: Trace, device: Device, found: Sequence[Window]) -> tuple[Lane, ...]:
    chosen = _middle(found)
    before = found[max(0, found.index(chosen) - 1)].events
    rows = _rows(device, chosen.events) + (
        _rows(device, before) if before is not chosen.events else []
    )
    sets = sets_of(trace, device, rows, chosen.start, chosen.end)
    labelled: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for start, end, code, index in rows:
        about = trace.codes[code]
        if about.kind in (Kind.COMM, Kind.OPERATOR) and end > chosen.start and start < chosen.end:
            moved = device.transfers.get(index)
            label = label_of(moved[0] if moved else None, about.name)
            span = (max(start, chosen.start), min(end, chosen.end), label)
            labelled[about.stream].append(span)
    return lanes_of(sets.compute, sets.mem, labelled, chosen.start, chosen.end)


def _notes(
    trace: Trace, steps: Sequence[Step], outside: int, unlinked: int, events: int
) -> tuple[str, ...]:
    notes = []
    if not trace.steps:
        notes.append(
            "no step is marked in it: the whole file is judged as one step; give the profiler "
            "schedule= and call prof.step() after each step"
        )
    if outside:
        notes.append(f"{outside:,} of {events:,} device events belong to no step")
    if trace.layout == "kineto" and unlinked > UNLINKED_MOST * events:
        notes.append(
            f"{unlinked:,} of {events:,} device events have no launch in the trace: whether the "
            "host launches fast enough is not judged; profile with ProfilerActivity.CPU too"
        )
    middle = median(step.time_ns for step in steps)
    slow = [step.name for step in steps if step.time_ns > 1.5 * middle]
    if slow:
        more = f" and {len(slow) - 5} more" if len(slow) > 5 else ""
        notes.append(f"outliers, over 1.5 x the median step: {', '.join(slow[:5])}{more}")
    return tuple(notes)

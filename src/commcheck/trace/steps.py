"""From a trace to what one rank's steps are made of: every definition in one place."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from statistics import median
from typing import Final

from commcheck.lazy import dataclass
from commcheck.trace import names
from commcheck.trace.collectives import calls_of, link_records, moved_of
from commcheck.trace.facts import Lane, Part, RankFacts, Step
from commcheck.trace.feeding import PAUSE_NS, Feeding, Waits, inputs_of
from commcheck.trace.intervals import Span, clip, intersect, length, longest, subtract, union
from commcheck.trace.lanes import label_of, lanes_of
from commcheck.trace.names import Kind
from commcheck.trace.roles import COULD_HIDE, Role, Roles
from commcheck.trace.sets import Row, Sets, rows_of, sets_in, sets_of
from commcheck.trace.store import Device, Trace
from commcheck.trace.windows import Window, whole_steps, windows

UNLINKED_MOST = 0.1
"""With more device events than this without their launch, waiting for launches is not known."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A window as it is measured. ``waits``: None where no launch is known."""

    window: Window
    rows: list[Row]
    sets: Sets
    waits: Waits | None


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
    found, outside = whole_steps(trace, device, *windows(trace, device))
    unlinked = device.launch_start.count(-1)
    knows_launches = unlinked <= UNLINKED_MOST * len(device.start)
    feeding = Feeding(trace, device) if knows_launches and trace.layout != "cpu" else None
    roles, inputs = Roles(trace, device), inputs_of(trace)
    talks = union((each.start, each.end) for each in trace.host_comm)
    forwards = _by_thread(trace) if _gathers(trace, device) else {}
    steps = [
        _step(trace, device, part, waits, forwards, inputs, talks)
        for part, waits in _waited(_parts(trace, device, found, roles, feeding))
    ]
    calls = calls_of(trace, device, found)
    moved = moved_of(calls)
    return RankFacts(
        file=trace.file,
        rank=trace.rank,
        device=name,
        layout=trace.layout,
        host=trace.host,
        world=trace.world,
        backend=trace.backend,
        library=trace.library,
        framework=names.framework(trace.annotations, (move.about for move in moved)),
        steps=tuple(steps),
        moved=moved,
        calls=calls,
        lanes=_lanes(trace, device, roles, found),
        lanes_of=_middle(found).name,
        outside=outside,
        unlinked=unlinked,
        records=len(trace.records),
        pipes=roles.pipes({role for step in steps for role in step.roles}),
        began_ns=found[0].start + trace.base_ns if found else 0,
        notes=(*_joined(found), *_notes(trace, steps, outside, unlinked, len(device.start))),
    )


_NEVER: Final = 1 << 62


def _parts(
    trace: Trace, device: Device, found: Sequence[Window], roles: Roles, feeding: Feeding | None
) -> Iterator[_Part]:
    over: list[Row] = []
    for window in found:
        rows = rows_of(device, window.events)
        sets, over = sets_in(trace, roles, window, rows, over)
        waits = feeding.waits(rows, sets.comm, sets.mem) if feeding else None
        yield _Part(window, rows, sets, waits)


def _waited(parts: Iterable[_Part]) -> Iterator[tuple[_Part, list[Span] | None]]:
    """Each window with what is waited for the host in it.

    Before the first kernel of a window it is waited in the one before: that gap is of both.
    """
    for part, after in pairwise(chain(parts, (None,))):
        if part is None:
            continue
        end = part.window.end
        if part.waits is None:
            yield part, None
        else:
            later = after.waits.spans if after and after.waits else ()
            begun = [wait for wait in later if wait[0] < end]
            yield part, clip((*part.waits.spans, *begun), part.window.start, end)


def _step(
    trace: Trace,
    device: Device,
    part: _Part,
    waits: list[Span] | None,
    forwards: dict[int, list[Span]],
    inputs: list[Span],
    talks: list[Span],
) -> Step:
    window, sets, rows = part.window, part.sets, part.rows
    exposed = subtract(sets.comm, sets.compute)
    alone = {role: subtract(mine, sets.compute) for role, mine in sets.roles.items()}
    judged = _together(alone, COULD_HIDE)
    busy = union(sets.compute + sets.comm)
    copies = subtract(sets.mem, busy)
    whole = window.end - window.start
    fetching = clip(inputs, window.start, window.end)
    waits = subtract(waits, fetching) if waits and fetching else waits
    pauses = [span for span in waits or () if span[1] - span[0] >= PAUSE_NS]
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
        exposed_judged_ns=length(judged),
        bubble_ns=length(alone.get(Role.PIPELINE, ())),
        untold_ns=length(alone.get(Role.UNTOLD, ())),
        exposed_tensor_ns=length(subtract(alone.get(Role.TENSOR, ()), judged)),
        longest_blank_ns=longest(exposed),
        mem_extra_ns=length(copies),
        idle_ns=whole - length(busy) - length(copies),
        host_gap_ns=part.waits.gap_ns if part.waits else None,
        host_wait_ns=None if waits is None else length(waits),
        pause_ns=length(pauses),
        longest_pause_ns=longest(pauses),
        host_comm_ns=length(intersect(pauses, talks)) if pauses else 0,
        input_ns=length(subtract(subtract(fetching, busy), copies)) if fetching else 0,
        exposed_unfed_ns=length(intersect(judged, waits)) if waits else 0,
        kernels=(counts[Kind.TASK] or counts[Kind.COMPUTE]) + comm_kernels,
        comm_kernels=comm_kernels,
        forward_ns=forward[0],
        gather_ns=forward[1],
        gather_exposed_ns=forward[2],
        roles={role: Part(length(sets.roles[role]), length(alone[role])) for role in sets.roles},
    )


def _together(spans: Mapping[Role, list[Span]], roles: Collection[Role]) -> list[Span]:
    mine = [spans[role] for role in roles if role in spans]
    return mine[0] if len(mine) == 1 else union(chain.from_iterable(mine))


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
    trace: Trace, device: Device, rows: list[Row], forwards: dict[int, list[Span]]
) -> tuple[int | None, int | None, int | None]:
    """Length of the forward pass on the device, all-gather in it, and of that the exposed part.

    All None where nothing is gathered in it.

    Of the forward pass is what the annotation's own thread launches within it: autograd launches
    the backward pass from another.
    """
    inside: list[Row] = []
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


def _lanes(trace: Trace, device: Device, roles: Roles, found: Sequence[Window]) -> tuple[Lane, ...]:
    chosen = _middle(found)
    before = found[max(0, found.index(chosen) - 1)].events
    rows = rows_of(device, chosen.events) + (
        rows_of(device, before) if before is not chosen.events else []
    )
    sets = sets_of(trace, roles, rows, chosen.start, chosen.end)
    labelled: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for start, end, code, index in rows:
        about = trace.codes[code]
        if about.kind in (Kind.COMM, Kind.OPERATOR) and end > chosen.start and start < chosen.end:
            moved = device.transfers.get(index)
            label = label_of(moved[0] if moved else None, about.name)
            span = (max(start, chosen.start), min(end, chosen.end), label)
            labelled[about.stream].append(span)
    return lanes_of(sets.compute, sets.mem, labelled, chosen.start, chosen.end)


def _joined(found: Sequence[Window]) -> list[str]:
    marks = found[0].marks if found else 1
    if marks == 1:
        return []
    only = "" if len(found) > 1 else ", if there are no more of them"
    return [
        f"of {marks} marked steps the last alone communicates all: they are judged as the "
        f"micro-batches of one{only}; call prof.step() once for each step of the optimizer"
    ]


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
        # torch_npu through Kineto tells no launch, whatever is profiled.
        advice = "" if trace.backend == "hccl" else "; profile with ProfilerActivity.CPU too"
        notes.append(
            f"{unlinked:,} of {events:,} device events have no launch in the trace: whether the "
            f"host launches fast enough is not judged{advice}"
        )
    middle = median(step.time_ns for step in steps)
    slow = [step.name for step in steps if step.time_ns > 1.5 * middle]
    if slow:
        more = f" and {len(slow) - 5} more" if len(slow) > 5 else ""
        notes.append(f"outliers, over 1.5 x the median step: {', '.join(slow[:5])}{more}")
    return tuple(notes)

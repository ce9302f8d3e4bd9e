"""Which step a device event belongs to, and where a step begins and ends on the device."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence

from commcheck.lazy import dataclass
from commcheck.trace import names
from commcheck.trace.names import Kind
from commcheck.trace.store import Annotation, Device, Trace


@dataclass(frozen=True, slots=True)
class Window:
    """A step on the device: [first device start, first device start of the next step)."""

    name: str
    start: int
    end: int
    host_ns: int | None
    events: array[int]  # indices of its device events, in no order
    marks: int = 1  # annotations of steps in it: several where each is of a micro-batch


def windows(trace: Trace, device: Device) -> tuple[list[Window], int]:
    """The steps that have device events, in order of time, and how many events are in none.

    An event belongs to the step in whose annotation its launch begins; one without a launch, or
    launched between steps, to the device window that its start falls into. Without annotations
    the whole file is one step, ``all``. On a host without device a window is the annotation.
    """
    steps = sorted(set(trace.steps), key=lambda step: (step.start, step.end))
    if not steps:
        events = array("i", range(len(device.start)))
        return [_last("all", None, events, device)], 0
    return (_on_host if trace.layout == "cpu" else _on_device)(steps, device)


def _on_host(steps: Sequence[Annotation], device: Device) -> tuple[list[Window], int]:
    mine = [array("i") for _ in steps]
    starts = [step.start for step in steps]
    outside = 0
    for index, start in enumerate(device.start):
        step = bisect_right(starts, start) - 1
        if step >= 0 and start < steps[step].end:
            mine[step].append(index)
        else:
            outside += 1
    found = [
        Window(step.name, step.start, step.end, step.end - step.start, events)
        for step, events in zip(steps, mine, strict=True)
        if len(events)
    ]
    return found, outside


def _on_device(steps: Sequence[Annotation], device: Device) -> tuple[list[Window], int]:
    mine = [array("i") for _ in steps]
    left = array("i")
    begins = [step.start for step in steps]
    ends = [step.end for step in steps]
    step, begin, end = -1, 0, 0
    for index, launch in enumerate(device.launch_start):
        if not begin <= launch < end:  # mostly it is launched in the step of the one before
            step = bisect_right(begins, launch) - 1
            begin, end = (begins[step], ends[step]) if step >= 0 else (0, 0)
        if begin <= launch < end:
            mine[step].append(index)
        else:
            left.append(index)
    linked = any(len(events) for events in mine)
    if linked:
        kept = [number for number, events in enumerate(mine) if len(events)]
        first = [min(map(device.start.__getitem__, mine[number])) for number in kept]
        last = max(ends[kept[-1]], max(map(device.end.__getitem__, mine[kept[-1]])))
    else:
        kept = list(range(len(steps)))
        first, last = begins, ends[-1]
    outside = 0
    for index in left:
        start = device.start[index]
        place = bisect_right(first, start) - 1
        if place >= 0 and start < last:
            mine[kept[place]].append(index)
        else:
            outside += 1
    return _bounded(steps, mine, device), outside


def _bounded(
    steps: Sequence[Annotation], mine: Sequence[array[int]], device: Device
) -> list[Window]:
    filled = [
        (min(map(device.start.__getitem__, events)), step, events)
        for step, events in zip(steps, mine, strict=True)
        if len(events)
    ]
    filled.sort(key=lambda each: each[0])
    # Work of an earlier step may be the last to end.
    last = max((max(map(device.end.__getitem__, each[2])) for each in filled), default=0)
    nexts = [start for start, _, _ in filled[1:]]
    ends = [*nexts, max(filled[-1][1].end, last)] if filled else []
    return [
        Window(step.name, start, end, step.end - step.start, events)
        for (start, step, events), end in zip(filled, ends, strict=True)
    ]


def whole_steps(
    trace: Trace, device: Device, found: list[Window], outside: int
) -> tuple[list[Window], int]:
    """The windows, those of micro-batches that accumulate gradients joined to steps.

    They are known by a last one that alone communicates, or alone does all that any does. What it
    exposes is to be held against the computing of all. Windows of no whole step are left out, and
    their events are in none. Unchanged where the windows follow no such rule.
    """
    spoken = [_spoken(trace, device, window) for window in found]
    everything = frozenset[tuple[str, str]]().union(*spoken)
    # A single one that does more than the others may do it now and then.
    least = 2 if all(spoken) else 1
    cycles: list[list[Window]] = [[]]
    for window, mine in zip(found, spoken, strict=True):
        cycles[-1].append(window)
        if mine == everything if all(spoken) else mine:
            cycles.append([])
    rest = cycles.pop()
    sizes = [len(cycle) for cycle in cycles]
    if len(sizes) < least or sizes[-1] == 1 or len(set(sizes[1:])) > 1 or sizes[0] > sizes[-1]:
        return found, outside
    if sizes[0] < sizes[-1]:
        rest += cycles.pop(0)
    outside += sum(len(window.events) for window in rest)
    return [_joined(cycle) for cycle in cycles], outside


def _spoken(trace: Trace, device: Device, window: Window) -> frozenset[tuple[str, str]]:
    """The kinds of collectives in a window, with their streams; NCCL has kernels by size, too."""
    codes = (trace.codes[code] for code in {device.code[index] for index in window.events})
    return frozenset(
        (names.collective(code.name), code.stream)
        for code in codes
        if code.kind in (Kind.COMM, Kind.OPERATOR)
    )


def _joined(cycle: Sequence[Window]) -> Window:
    first, last = cycle[0], cycle[-1]
    events = array("i")
    for window in cycle:
        events.extend(window.events)
    hosts = [window.host_ns for window in cycle if window.host_ns is not None]
    name = f"{first.name}-{last.name.rpartition('#')[2]}"
    return Window(name, first.start, last.end, sum(hosts) or None, events, len(cycle))


def _last(name: str, host_ns: int | None, events: array[int], device: Device) -> Window:
    return Window(name, min(device.start), max(device.end), host_ns, events)

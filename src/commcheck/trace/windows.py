"""Which step a device event belongs to, and where a step begins and ends on the device."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence

from commcheck.lazy import dataclass
from commcheck.trace.store import Annotation, Device, Trace


@dataclass(frozen=True, slots=True)
class Window:
    """A step on the device: [first device start, first device start of the next step)."""

    name: str
    start: int
    end: int
    host_ns: int | None
    events: array[int]  # indices of its device events, in no order


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
    if trace.layout == "cpu":
        return _on_host(steps, device)
    return _on_device(steps, device)


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


def _last(name: str, host_ns: int | None, events: array[int], device: Device) -> Window:
    return Window(name, min(device.start), max(device.end), host_ns, events)

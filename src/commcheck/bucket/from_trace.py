"""A profiler trace of one rank as a step without its communication, and what its buckets were.

Ready time of a bucket: the end of the last kernel that was launched before its collective; NCCL's
stream waits for exactly that. What runs after the last collective is the optimizer's.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Final

from commcheck.bucket.link import Link, fitted
from commcheck.bucket.logged import lay_over
from commcheck.bucket.work import Work, split
from commcheck.lazy import dataclass, regex
from commcheck.trace.collectives import link_records
from commcheck.trace.names import Kind, framework
from commcheck.trace.read import read
from commcheck.trace.store import Device, Trace
from commcheck.trace.windows import Window, windows

_REDUCES: Final = frozenset({"allreduce", "reduce_scatter", "reduce"})
_GATHERED: Final = frozenset({"ZeRO-3", "FSDP", "FSDP2"})
_INSIDE: Final = regex(r"tensor|(?<![a-z])tp(?![a-z])|(?<!data_)model_parallel|pipeline", re.I)
"""Groups whose collectives belong to a layer or stage, not to gradients."""

_UNIT_BYTES: Final = 4
"""Gradients are taken for float32 where the trace names no type: DDP's and Megatron's default."""


class NoGradients(Exception):
    """The trace does not show gradients in buckets. The text says why, and what would."""


@dataclass(frozen=True, slots=True)
class Traced:
    """What a trace says: the work, and how its buckets were.

    ``ends``: where the buckets end among the gradients of ``work``. ``step_us``: as measured.
    ``link``: fitted on the collectives themselves, None where that cannot be.
    ``scatters``: gradients are reduce-scattered and not all-reduced.
    """

    work: Work
    ends: tuple[int, ...]
    step_us: float
    link: Link | None
    why_no_link: str
    framework: str
    ranks: int
    scatters: bool


def read_work(path: Path, sizes: Sequence[int] = ()) -> Traced:
    """Read one rank's trace. ``sizes``: bytes of each bucket, where DDP's logging data tells them.

    Raises ``NoGradients``, and ``trace.source.Foreign`` for no trace.
    """
    trace = read(path)
    link_records(trace)
    device = _busiest(trace)
    found = windows(trace, device)[0]
    odd = lay_over(trace, device, found, sizes) if sizes else None
    name = framework(trace.annotations, {moved.about for moved, _ in device.transfers.values()})
    steps = [_step(trace, device, window) for window in found]
    good = [step for step in steps if step is not None]
    if name in _GATHERED or any(step.gathers for step in good):
        raise NoGradients(
            f"{path.name}: a step of {name or 'sharded parameters'}, whose collectives are its "
            "wrapped units and not buckets of gradients; analyze config judges its settings"
        )
    if not good and odd:
        raise NoGradients(
            f"{path.name}: {odd} all-reduces in a step, and the logging data has {len(sizes)} "
            "buckets: they are not of one job, or it reduces more than gradients"
        )
    if not good:
        raise NoGradients(
            f"{path.name}: no all-reduce or reduce-scatter that tells its bytes; profile with "
            "torch 2.1 or newer on GPUs, or give DDP's _get_ddp_logging_data() as JSON, or a model "
            "description"
        )
    usual = median(len(step.buckets) for step in good)
    alike = [step for step in good if len(step.buckets) == usual] or good
    step = sorted(alike, key=lambda each: each.step_us)[len(alike) // 2]
    return _traced(path, trace, name, step, alike)


@dataclass(frozen=True, slots=True)
class _Step:
    buckets: tuple[tuple[float, float], ...]
    calls: tuple[tuple[float, float], ...]  # bytes, us of each
    backward_us: float
    step_us: float
    after_us: float
    ranks: int
    element_bytes: int
    scatters: bool
    gathers: bool  # parameters, between reductions: they are sharded
    is_exact: bool


def _busiest(trace: Trace) -> Device:
    found = [device for device in trace.devices.values() if len(device.start)]
    if not found:
        raise NoGradients(f"{trace.file}: no work of a device")

    def busy(device: Device) -> int:
        kinds = [code.kind for code in trace.codes]
        rows = zip(device.start, device.end, device.code, strict=True)
        return sum(end - start for start, end, code in rows if kinds[code] is Kind.COMPUTE)

    return max(found, key=busy)


def _step(trace: Trace, device: Device, window: Window) -> _Step | None:
    """The buckets of one step; None where it has none that tells its size."""
    mine: dict[tuple[str, str], list[int]] = {}
    gathers: list[int] = []
    kinds = [code.kind for code in trace.codes]
    for index in window.events:
        moved = device.transfers.get(index)
        if kinds[device.code[index]] is not Kind.COMM or moved is None:
            continue
        what = moved[0]
        if what.kind == "allgather":
            gathers.append(device.start[index])
        if what.kind in _REDUCES and what.size_bytes and not _INSIDE.search(what.about):
            mine.setdefault((what.kind, what.group), []).append(index)
    if not mine:
        return None

    def moved_bytes(indices: Sequence[int]) -> int:
        return sum(device.transfers[index][0].size_bytes or 0 for index in indices)

    (kind, _), chosen = max(mine.items(), key=lambda each: moved_bytes(each[1]))
    chosen.sort(key=lambda index: device.start[index])
    compute = sorted(
        (device.launch_start[index], device.start[index], device.end[index])
        for index in window.events
        if kinds[device.code[index]] is Kind.COMPUTE
    )
    launches = [device.launch_start[index] for index in chosen]
    is_exact = min(launches) >= 0 and bool(compute) and compute[0][0] >= 0
    ready_ns = _ready(device, chosen, compute) if is_exact else [device.start[i] for i in chosen]
    first, last = device.start[chosen[0]], device.start[chosen[-1]]
    between = any(first < start < last for start in gathers)
    step = _measured(device, window, kind, chosen, compute, ready_ns)
    return replace(step, gathers=kind == "reduce_scatter" and between, is_exact=is_exact)


def _ready(
    device: Device, chosen: Sequence[int], compute: Sequence[tuple[int, int, int]]
) -> list[int]:
    begins = [launch for launch, _, _ in compute]
    latest: list[int] = []
    for _, _, end in compute:
        latest.append(max(end, latest[-1]) if latest else end)
    found = []
    for index in chosen:
        place = bisect_left(begins, device.launch_start[index]) - 1
        found.append(latest[place] if place >= 0 else device.start[index])
    return found


def _measured(
    device: Device,
    window: Window,
    kind: str,
    chosen: Sequence[int],
    compute: Sequence[tuple[int, int, int]],
    ready_ns: Sequence[int],
) -> _Step:
    sized = [device.transfers[index][0] for index in chosen]
    at = [(ready - window.start) / 1e3 for ready in ready_ns]
    last_end = max(device.end[index] for index in chosen)
    backward_ns = max(ready_ns)
    done = max(last_end, backward_ns)
    late = [end for _, start, end in compute if start >= done]
    after_us = (max(window.end, *late, done) - done) / 1e3
    return _Step(
        buckets=tuple(
            (float(what.size_bytes or 0), latest)
            for what, latest in zip(sized, accumulate(at, max), strict=True)
        ),
        calls=tuple(
            (float(device.transfers[i][0].size_bytes or 0), (device.end[i] - device.start[i]) / 1e3)
            for i in chosen
        ),
        backward_us=(backward_ns - window.start) / 1e3,
        step_us=(window.end - window.start) / 1e3,
        after_us=after_us,
        ranks=max((each.group_size for each in sized), default=0),
        element_bytes=max(sized, key=lambda each: each.size_bytes or 0).element_bytes,
        scatters=kind == "reduce_scatter",
        gathers=False,
        is_exact=True,
    )


def _traced(path: Path, trace: Trace, name: str, step: _Step, all_steps: Sequence[_Step]) -> Traced:
    within = "within one, gradients are taken to get ready evenly"
    if len(step.buckets) == 1:
        within = "of the only one, gradients are taken to get ready over the last two thirds"
    notes = [f"{path.name}: a trace shows buckets: {within}"]
    if not step.is_exact:
        notes.append(
            f"{path.name}: launches are not in the trace: a bucket is taken to be ready when its "
            "collective begins, so that what waited in a queue looks late"
        )
    sizes, ready, ends = split(step.buckets)
    work = Work(
        name=path.name,
        source="trace",
        sizes=sizes,
        ready_us=ready,
        before_us=0.0,
        backward_us=step.backward_us,
        after_us=step.after_us,
        element_bytes=step.element_bytes or _UNIT_BYTES,
        notes=tuple(notes),
    )
    link, why = None, ""
    try:
        link = fitted(_quickest(all_steps), f"the collectives of {path.name}")
    except ValueError as error:
        why = f"{path.name}: latency and bandwidth cannot be told from its collectives: {error}"
    return Traced(
        work=work,
        ends=ends,
        step_us=step.step_us,
        link=link,
        why_no_link=why,
        framework=name,
        ranks=trace.world or step.ranks,
        scatters=step.scatters,
    )


def _quickest(steps: Sequence[_Step]) -> list[tuple[float, float]]:
    """Of each size the shortest time: who comes last waits for nobody."""
    least: dict[float, float] = {}
    for step in steps:
        for size, time in step.calls:
            if time > 0:
                least[size] = min(time, least.get(size, time))
    return sorted(least.items())

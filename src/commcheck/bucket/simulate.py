"""The step over bucket sizes: buckets fill, queue for the wire, and the last one ends the backward.

Model: a bucket may start once its last gradient is ready and the one before it is launched; a
launch costs ``launch_us``; a stream carries one collective at a time. It leaves out late ranks,
noise, and other users of the wire.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import heapreplace
from itertools import accumulate
from operator import add, sub

from commcheck.bucket.layout import Framework, cut
from commcheck.bucket.link import Link
from commcheck.bucket.work import Work
from commcheck.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Costs:
    """What else a collective costs.

    ``launch_us``: host time of one launch. ``copy_us_per_mb``: copying gradients into buckets and
    back, per MB (1e6 bytes). ``slowdown``: how much slower computing is while a collective runs
    (0.1: a tenth). ``streams``: collectives at a time. ``share``: of the network's time for an
    all-reduce that a bucket takes (0.5: a reduce-scatter). ``gather``: the parameters are gathered
    after the step in buckets of the same size and time (ZeRO-1 and 2).
    """

    launch_us: float = 0.0
    copy_us_per_mb: float = 0.0
    slowdown: float = 0.0
    streams: int = 1
    share: float = 1.0
    gather: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """One bucket size: ``cap`` in the framework's unit, None for a layout that was observed.

    ``step_us`` and ``exposed_us`` are predictions.
    """

    buckets: int
    total_bytes: float
    largest_bytes: float
    step_us: float
    exposed_us: float
    cap: float | None = None
    cap_bytes: float = 0.0
    layout: int = 0  # equal for caps that give the same buckets

    @property
    def mean_bytes(self) -> float:
        """Of a bucket."""
        return self.total_bytes / self.buckets


def outcome(
    work: Work, sizes: Sequence[float], ends: Sequence[int], link: Link, costs: Costs
) -> Outcome:
    """The step with one layout: the buckets' sizes and ends. Copies must be in ``work`` already."""
    times = link.each_us(sizes)
    if costs.share != 1.0:
        times = [costs.share * time for time in times]
    comm = sum(times)
    last = _last_end(work, ends, times, costs)
    backward = work.backward_us
    if costs.slowdown:
        for _ in range(2):  # overlapped time depends on the length of the backward, and it on that
            overlapped = max(0.0, comm - max(0.0, last - backward))
            backward = work.backward_us + costs.slowdown * overlapped
    exposed = max(0.0, last - backward)
    gathered = comm + costs.launch_us * len(sizes) if costs.gather else 0.0
    return Outcome(
        buckets=len(sizes),
        total_bytes=sum(sizes),
        largest_bytes=max(sizes),
        step_us=work.before_us + max(backward, last) + gathered + work.after_us,
        exposed_us=exposed + gathered,
    )


def _last_end(work: Work, ends: Sequence[int], times: Sequence[float], costs: Costs) -> float:
    """When the last bucket is through, since the begin of the backward pass."""
    ready = [work.ready_us[end - 1] for end in ends]
    launched: Sequence[float] = ready
    if costs.launch_us:
        # L_i = max(R_i, L_(i-1)) + o, unrolled: (i + 1) o + max over k <= i of R_k - k o.
        each = costs.launch_us
        steps = [each * number for number in range(len(ready) + 1)]
        launched = list(map(add, accumulate(map(sub, ready, steps), max), steps[1:]))
    if costs.streams == 1:
        # E_i = max(L_i, E_(i-1)) + T_i, unrolled: the last is the maximum over i of L_i and all
        # that is to be sent from there on.
        left = list(accumulate(reversed(times)))
        return float(max(map(add, launched, reversed(left))))
    free = [0.0] * costs.streams
    done = 0.0
    for start, time in zip(launched, times, strict=True):
        ended = max(start, free[0]) + time
        heapreplace(free, ended)
        done = max(done, ended)
    return done


def sweep(
    work: Work, link: Link, costs: Costs, framework: Framework, caps: Iterable[float]
) -> tuple[Outcome, ...]:
    """Predict the step for every cap, in the framework's unit. Equal layouts are computed once."""
    copied = work.with_copies(costs.copy_us_per_mb / 1e6)
    sums = copied.sums
    found: list[Outcome] = []
    until, number = -1.0, 0
    one = None
    for cap in sorted(caps):
        size = framework.bytes_of(cap, work.element_bytes)
        same = size < until if framework.closes_before else size <= until
        if one is None or not same:
            layout = cut(sums, size, before=framework.closes_before)
            until, number = layout.until_bytes, number + 1
            one = outcome(copied, sizes_of(sums, layout.ends), layout.ends, link, costs)
        found.append(replace(one, cap=cap, cap_bytes=size, layout=number))
    return tuple(found)


def sizes_of(sums: Sequence[float], ends: Sequence[int]) -> list[float]:
    """Bytes of each bucket."""
    marks = [sums[end] for end in ends]
    return list(map(sub, marks, [0.0, *marks]))

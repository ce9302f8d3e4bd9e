"""Which bucket size to set, what it brings, and how sure that is. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from commcheck.bucket import layout
from commcheck.bucket.layout import Framework, cut
from commcheck.bucket.link import Link
from commcheck.bucket.simulate import Costs, Outcome, outcome, sizes_of, sweep
from commcheck.bucket.work import Work
from commcheck.lazy import dataclass

NEAR: Final = 0.01
"""The largest size within this of the least step is advised: fewer launches, less noise."""

FLAT: Final = 0.02
"""Below this over all sizes the curve is flat."""

DOMINANT: Final = 0.5
"""A gradient with this share of all bytes decides alone: it is never split."""

LATENCY_FACTOR: Final = 4
"""A bucket of so many n_half spends a fifth of its time on latency."""

DOUBTS: Final = ((0.67, 1.0, 1.0), (1.5, 1.0, 1.0), (1.0, 0.8, 1.0), (1.0, 1.25, 1.0),
                 (1.0, 1.0, 0.9), (1.0, 1.0, 1.1))  # fmt: skip
"""Latency, bandwidth and backward time by which the inputs may be wrong; each is tried."""


@dataclass(frozen=True, slots=True)
class Now:
    """The buckets that the advice is compared with.

    ``value``: in the framework's unit, None for buckets as a trace shows them, whose ends stand in
    ``ends``. ``first_bytes``: DDP's own cap of the first bucket. ``is_known``: the job has them; a
    default is only supposed.
    """

    told: str
    value: float | None
    is_known: bool
    first_bytes: float | None = None
    ends: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What the simulator says. Shares are of the step time that is compared with.

    ``outcomes``: over the grid. ``best``: to be set; ``same``: smallest and largest value of the
    grid that give the same buckets. ``gain``, ``gain_low``, ``gain_high``: how much shorter the
    step gets, and the least and most of it over ``DOUBTS``. ``capped``: memory ruled out what would
    be better. ``wire_us``: all gradients on the wire, without latency. ``wire_bound``: no size
    hides it. ``dominant``: one gradient decides alone.
    """

    framework: Framework
    outcomes: tuple[Outcome, ...]
    now: Outcome
    compared: Now
    best: Outcome
    same: tuple[float, float]
    gain: float
    gain_low: float
    gain_high: float
    flat: bool
    wire_us: float
    wire_bound: bool
    dominant: bool
    capped: bool
    half_bytes: float
    memory_bytes: float | None
    memory_now_bytes: float | None


def default_of(framework: Framework, ranks: int | None) -> Now:
    """What a framework does where nothing is set. ``ranks``: data-parallel size."""
    if framework is layout.DDP:
        told = "bucket_cap_mb=None (1 MiB, then 25)"
        return Now(told, layout.DDP_DEFAULT_MIB, False, float(layout.DDP_FIRST_BYTES))
    value = layout.DEEPSPEED_DEFAULT
    if framework is layout.MEGATRON:
        value = max(layout.MEGATRON_LEAST, layout.MEGATRON_PER_RANK * (ranks or 1))
    return Now(f"{framework.told(value)} (default)", value, False)


def memory_of(framework: Framework, size_bytes: float, total_bytes: float) -> float | None:
    """Bytes that buckets of a size take; None where the size makes no difference."""
    if framework.buffers:
        return framework.buffers * size_bytes
    return total_bytes if framework is layout.DDP else None


def advise(
    work: Work,
    link: Link,
    costs: Costs,
    framework: Framework,
    now: Now,
    free_bytes: float | None = None,
) -> Advice:
    """Compare sizes on the framework's grid with ``now``; ``free_bytes`` caps their memory.

    Raises ``ValueError`` where no size of the grid fits into the memory.
    """
    found = sweep(work, link, costs, framework, framework.grid)
    fitting = [each for each in found if _fits(framework, each, free_bytes)]
    if not fitting:
        raise ValueError("not even the smallest bucket fits into the free memory")
    # Sizes of which the network's time is not known are not advised.
    allowed = [each for each in fitting if each.cap_bytes >= link.least_bytes] or fitting[-1:]
    copied = work.with_copies(costs.copy_us_per_mb / 1e6)
    sums = copied.sums
    ends = now.ends or _ends(work, framework, now, sums)
    compared = outcome(copied, sizes_of(sums, ends), ends, link, costs)
    best = _recommended(allowed)
    alike = [each.cap or 0.0 for each in allowed if each.layout == best.layout]
    cap_bytes = best.cap_bytes
    best_ends = cut(sums, cap_bytes, before=framework.closes_before).ends
    gains = [1 - best.step_us / compared.step_us]
    for alpha, beta, backward in DOUBTS:
        other, wire = copied.slower(backward), link.scaled(alpha, beta)
        after = outcome(other, sizes_of(sums, best_ends), best_ends, wire, costs).step_us
        gains.append(1 - after / outcome(other, sizes_of(sums, ends), ends, wire, costs).step_us)
    steps = [each.step_us for each in found]
    on_wire = costs.share * (link.time_us(work.total_bytes) - link.alpha_us)
    return Advice(
        framework=framework,
        outcomes=found,
        now=compared,
        compared=now,
        best=best,
        same=(min(alike), max(alike)),
        gain=gains[0],
        gain_low=min(gains),
        gain_high=max(gains),
        flat=max(steps) <= (1 + FLAT) * min(steps),
        wire_us=on_wire,
        wire_bound=on_wire > copied.backward_us,
        dominant=max(work.sizes) >= DOMINANT * work.total_bytes,
        capped=any(each.step_us < (1 - NEAR) * best.step_us for each in found[len(fitting) :]),
        half_bytes=link.half_bytes,
        memory_bytes=memory_of(framework, cap_bytes, work.total_bytes),
        memory_now_bytes=memory_of(
            framework,
            compared.largest_bytes
            if now.value is None
            else framework.bytes_of(now.value, work.element_bytes),
            work.total_bytes,
        ),
    )


def _fits(framework: Framework, each: Outcome, free_bytes: float | None) -> bool:
    if free_bytes is None or not framework.buffers:
        return True
    return framework.buffers * each.cap_bytes <= free_bytes


def _recommended(found: Sequence[Outcome]) -> Outcome:
    """The largest within ``NEAR`` of the least; of those with the same buckets the middle one.

    In the middle a model that changes a little keeps its buckets.
    """
    least = min(each.step_us for each in found)
    largest = [each for each in found if each.step_us <= (1 + NEAR) * least][-1]
    alike = [each for each in found if each.layout == largest.layout]
    return alike[len(alike) // 2]


def _ends(work: Work, framework: Framework, now: Now, sums: Sequence[float]) -> tuple[int, ...]:
    size = framework.bytes_of(now.value or 0.0, work.element_bytes)
    return cut(sums, size, before=framework.closes_before, first_bytes=now.first_bytes).ends

"""How long a collective of n bytes takes: a table that a sweep measured, or alpha + n / beta."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import Final

from commcheck.jobs.reading import Sweep, median
from commcheck.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """Times in microseconds over sizes in bytes; ``source`` says where they come from.

    ``alpha_us``: time of the smallest message. ``beta_gbytes``: bytes by time of the largest ones
    (algbw, GB/s). ``sizes`` and ``times_us``: the table, ascending; empty where it is only alpha
    and beta. ``is_measured_low``: messages small enough to show latency were among them.
    """

    source: str
    alpha_us: float
    beta_gbytes: float
    sizes: tuple[float, ...] = ()
    times_us: tuple[float, ...] = ()
    is_measured_low: bool = True
    _slopes: tuple[float, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Slopes of the table's parts; the last one goes on for ever."""
        slopes = [
            (after - before) / (more - less)
            for (less, before), (more, after) in pairwise(
                zip(self.sizes, self.times_us, strict=True)
            )
        ]
        slopes.append(1 / (1e3 * self.beta_gbytes))
        object.__setattr__(self, "_slopes", tuple(slopes))

    def time_us(self, size: float) -> float:
        """The time of one collective."""
        return self.each_us((size,))[0]

    def each_us(self, sizes: Sequence[float]) -> list[float]:
        """The time of each of several."""
        slopes, table, times = self._slopes, self.sizes, self.times_us
        if not table:
            slope = slopes[0]
            return [self.alpha_us + size * slope for size in sizes]
        least = table[0]
        return [
            times[place] + (max(size, least) - table[place]) * slopes[place]
            for size in sizes
            for place in (max(bisect_right(table, size) - 1, 0),)
        ]

    @property
    def half_bytes(self) -> float:
        """n_half = alpha x beta: a message of this size reaches half the bandwidth."""
        return self.alpha_us * self.beta_gbytes * 1e3

    @property
    def least_bytes(self) -> float:
        """Below this nothing is known; 0 where latency is."""
        return 0.0 if self.is_measured_low else self.sizes[0]

    def scaled(self, alpha: float, beta: float) -> Link:
        """The link with its latency and bandwidth multiplied: how sure an advice is."""
        base = self.alpha_us
        times = tuple(base * alpha + max(time - base, 0.0) / beta for time in self.times_us)
        return replace(
            self,
            alpha_us=base * alpha,
            beta_gbytes=self.beta_gbytes * beta,
            times_us=_rising(times),
        )


def _rising(times: Sequence[float]) -> tuple[float, ...]:
    """Times that never fall with size: a table's noise must not make a larger message faster."""
    highest, found = 0.0, []
    for time in times:
        highest = max(highest, time)
        found.append(highest)
    return tuple(found)


def given(alpha_us: float, beta_gbytes: float, source: str = "given") -> Link:
    """alpha + n / beta, with beta the algbw in GB/s."""
    return Link(source, alpha_us, beta_gbytes)


LOW_BYTES: Final = 256 << 10
"""A sweep that begins above this does not show latency: buckets as small as that are in use."""

_LARGE_SHARE: Final = 4
_FEW: Final = 3


def of_table(points: Sequence[tuple[float, float]], source: str) -> Link:
    """A link from (bytes, us). Raises ``ValueError`` below two different sizes.

    Bandwidth is the slope over the largest sizes, where latency no longer counts.
    """
    by_size: dict[float, list[float]] = {}
    for size, time in points:
        if size > 0 and time > 0:
            by_size.setdefault(size, []).append(time)
    if len(by_size) < 2:
        raise ValueError("fewer than two different sizes")
    sizes = sorted(by_size)
    times = _rising([median(by_size[size]) for size in sizes])
    large = [
        (size, time)
        for size, time in zip(sizes, times, strict=True)
        if size >= sizes[-1] / _LARGE_SHARE
    ][-_FEW:]
    (less, before), (more, after) = large[0], large[-1]
    if more > less and after > before:
        beta = (more - less) / (after - before) / 1e3
    else:
        beta = more / after / 1e3
    return Link(source, times[0], beta, tuple(sizes), times, sizes[0] <= LOW_BYTES)


def of_sweep(sweep: Sweep, source: str) -> Link:
    """The table of a sweep: the better placement of each size. Raises ``ValueError`` if empty."""
    points = [
        (float(row.size), min(half.time_us for half in row.halves))
        for row in sweep.rows
        if row.size and row.halves
    ]
    return of_table(points, source)


def fitted(points: Sequence[tuple[float, float]], source: str) -> Link:
    """alpha + n / beta with the least relative error. Raises ``ValueError`` where nothing fits.

    For few sizes that lie close together, as the buckets of a job do.
    """
    sizes = {size for size, _ in points}
    if len(sizes) < 2 or max(sizes) < 2 * min(sizes):
        raise ValueError("the sizes are too alike to tell latency from bandwidth")
    weights = [1 / (time * time) for _, time in points]
    w = sum(weights)
    x = sum(weight * size for weight, (size, _) in zip(weights, points, strict=True)) / w
    y = sum(weight * time for weight, (_, time) in zip(weights, points, strict=True)) / w
    top = sum(wt * (s - x) * (t - y) for wt, (s, t) in zip(weights, points, strict=True))
    bottom = sum(wt * (s - x) ** 2 for wt, (s, _) in zip(weights, points, strict=True))
    slope = top / bottom
    if slope <= 0:
        raise ValueError("larger collectives take no longer: their time is waiting")
    return Link(source, max(y - slope * x, 0.0), 1 / slope / 1e3)

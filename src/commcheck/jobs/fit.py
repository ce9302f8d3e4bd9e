"""Latency, bandwidth and knee of a sweep: the alpha-beta model, fitted where it holds.

One line does not fit a whole sweep: protocols switch and pipelines fill slowly, and the best single
fit misses the middle by 40 % on healthy tables. So latency is read off the smallest sizes and
bandwidth is fitted on the largest, weighted for the least relative error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from commcheck.jobs.reading import MIB, Row, median
from commcheck.lazy import dataclass

SMALL: Final = 64 << 10
LARGE: Final = 64 * MIB
_FIT_ROWS: Final = 4


@dataclass(frozen=True, slots=True)
class Shape:
    """A sweep as a few numbers. Bandwidths are busbw in GB/s, sizes bytes, times microseconds.

    ``alpha_us``: median time of sizes up to 64 KiB. ``asymptote``: busbw for infinite sizes, fitted
    on 64 MiB and more (four sizes at least). ``knee``: the first size with half the peak.
    ``spread``: coefficient of variation over run cycles at 64 MiB and more, None for one cycle.
    """

    points: tuple[tuple[int, float], ...]  # size and best busbw, ascending
    peak: float
    peak_size: int
    last: float
    last_size: int
    alpha_us: float | None
    asymptote: float | None
    knee: int | None
    placement: tuple[tuple[int, float], ...]  # size >= 64 MiB, relative difference
    spread: float | None

    def at_least(self, size: int) -> tuple[tuple[int, float], ...]:
        """The points from a size on."""
        return tuple(point for point in self.points if point[0] >= size)


def shape(rows: Sequence[Row]) -> Shape | None:
    """The numbers of a sweep; None where no row was measured. Cycles are taken together."""
    measured = [row for row in rows if row.size and row.halves]
    if not measured:
        return None
    by_size: dict[int, list[Row]] = {}
    for row in measured:
        by_size.setdefault(row.size, []).append(row)
    points = tuple((size, max(row.best for row in by_size[size])) for size in sorted(by_size))
    peak_size, peak = max(points, key=lambda point: point[1])
    small = [half.time_us for row in measured if row.size <= SMALL for half in row.halves]
    return Shape(
        points=points,
        peak=peak,
        peak_size=peak_size,
        last=points[-1][1],
        last_size=points[-1][0],
        alpha_us=median(small) if small else None,
        asymptote=_asymptote(measured),
        knee=next((size for size, busbw in points if busbw >= peak / 2), None),
        placement=tuple((s, d) for s in sorted(by_size) if s >= LARGE for d in _apart(by_size[s])),
        spread=_spread(by_size),
    )


def _apart(rows: Sequence[Row]) -> list[float]:
    found = []
    for row in rows:
        if row.out_of_place and row.in_place and row.best > 0:
            found.append(abs(row.out_of_place.busbw - row.in_place.busbw) / row.best)
    return found


def _spread(by_size: dict[int, list[Row]]) -> float | None:
    worst = None
    for size, rows in by_size.items():
        if size >= LARGE and len(rows) > 1:
            values = [row.best for row in rows]
            mean = sum(values) / len(values)
            variance = sum((each - mean) ** 2 for each in values) / (len(values) - 1)
            if mean > 0:
                worst = max(worst or 0.0, variance**0.5 / mean)
    return worst


def _asymptote(rows: Sequence[Row]) -> float | None:
    """1/b of t = a + b S with weights 1/t^2, as busbw."""
    large = [(row.size, half) for row in rows if row.size >= LARGE for half in row.halves]
    large = [(size, half) for size, half in large if half.time_us > 0 and half.algbw > 0]
    if len({size for size, _ in large}) < _FIT_ROWS:
        return None
    slope = _slope([(size, half.time_us) for size, half in large])
    if slope is None:
        return None
    factor = large[-1][1].busbw / large[-1][1].algbw
    return factor / slope / 1e3


def _slope(points: Sequence[tuple[float, float]]) -> float | None:
    weights = [1 / (time * time) for _, time in points]
    sw = sum(weights)
    swx = sum(w * x for w, (x, _) in zip(weights, points, strict=True))
    swy = sum(w * y for w, (_, y) in zip(weights, points, strict=True))
    swxx = sum(w * x * x for w, (x, _) in zip(weights, points, strict=True))
    swxy = sum(w * x * y for w, (x, y) in zip(weights, points, strict=True))
    bottom = sw * swxx - swx * swx
    if bottom <= 0:
        return None
    slope = (sw * swxy - swx * swy) / bottom
    return slope if slope > 0 else None

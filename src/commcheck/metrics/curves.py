"""Values over a grid of instants, None where nobody told any. Pure."""

from __future__ import annotations

from collections.abc import Sequence

Curve = tuple[float | None, ...]


def highest(curves: Sequence[Curve]) -> Curve:
    """The highest of some curves at each instant."""
    return tuple(
        max((value for value in at if value is not None), default=None)
        for at in zip(*curves, strict=True)
    )


def average(curves: Sequence[Curve]) -> Curve:
    """The mean of some curves at each instant, of those that have a sample."""
    return tuple(
        sum(there) / len(there) if (there := [v for v in at if v is not None]) else None
        for at in zip(*curves, strict=True)
    )


def mean(curves: Sequence[Curve]) -> float | None:
    """The mean of all samples; None where there is none."""
    values = [value for curve in curves for value in curve if value is not None]
    return sum(values) / len(values) if values else None

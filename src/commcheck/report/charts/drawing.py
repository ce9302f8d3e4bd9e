"""What every chart is made of: shapes on a canvas, axes with round numbers, a table beside it.

A shape is data. The page's template writes it and escapes every value on the way, so a host's
words in a label stay words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from commcheck.lazy import dataclass

WIDTH: Final = 720
"""Units of a drawing's width; the page scales it to its own."""

LETTER: Final = 6.6
"""Width of a letter of an 11-unit label, a little too wide rather than too narrow."""

MAX_POINTS: Final = 2000
"""Points or spans drawn in one chart: more cannot be told apart on a screen."""


INKS: Final = ("#2f6fd0", "#b25e00", "#2e7d4f", "#8a3ffc", "#8a6d00", "#7a8591")
"""Colours of series, in order; each also has a dash of its own and its name at its end."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One element: its tag, its attributes, and for ``text`` and titles the words in it."""

    tag: str
    attributes: Mapping[str, str]
    text: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of a drawing, for who cannot see it. ``more`` rows were left out."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: int = 0

    @classmethod
    def of(cls, head: Sequence[str], rows: Sequence[Sequence[str]], most: int = 40) -> Table:
        """The first rows, and how many more there are."""
        kept = tuple(tuple(row) for row in rows[:most])
        return cls(tuple(head), kept, max(0, len(rows) - most))


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart: shapes on a canvas, what it shows in one sentence, and its numbers."""

    height: int
    shapes: tuple[Shape, ...]
    says: str
    table: Table
    width: int = WIDTH


def number(value: float) -> str:
    """A coordinate: at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def shape(tag: str, text: str = "", title: str = "", **attributes: float | str) -> Shape:
    """A shape; ``stroke_width=2`` is the attribute ``stroke-width``, ``class_`` is ``class``."""
    return Shape(
        tag,
        {
            name.rstrip("_").replace("_", "-"): value if isinstance(value, str) else number(value)
            for name, value in attributes.items()
        },
        text,
        title,
    )


def label(x: float, y: float, text: str, anchor: str = "start", class_: str = "c-text") -> Shape:
    """Words at a place."""
    return shape(
        "text", text, x=x, y=y, text_anchor=anchor, font_size="11", fill="currentColor",
        class_=class_,
    )  # fmt: skip


# --- axes ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Axis:
    """From values to places: ``low`` and ``high`` are values, ``start`` and ``end`` places."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The place of a value; what lies outside is drawn at the edge."""
        low, high, here = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, here = math.log2(low), math.log2(high), math.log2(here)
        share = (here - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)


def ticks(low: float, high: float, most: int = 6) -> Iterator[float]:
    """Round numbers from ``low`` to ``high``: steps of 1, 2 or 5 times a power of ten."""
    raw = (high - low) / most
    if raw <= 0:
        yield low
        return
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    for count in range(first, math.floor(high / step + 1e-9) + 1):
        yield count * step


def log_ticks(low: float, high: float, most: int = 9) -> Iterator[float]:
    """Powers of two from ``low`` to ``high``, every n-th of them."""
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / most))
    for power in range(first, last + 1, step):
        yield float(2**power)


_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi")
_DECIMAL: Final = ("", "k", "M", "G", "T")


def amount(value: float, unit: str = "") -> str:
    """A value as an axis says it: ``8 MiB``, ``1.5 ms``, ``0.25 GB/s``."""
    if unit in ("bytes", "B"):
        power = 0
        while abs(value) >= 1024 and power < len(_BINARY) - 1:
            value, power = value / 1024, power + 1
        return f"{value:.4g} {_BINARY[power]}B"
    if unit == "ns":
        for size, word in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
            if abs(value) >= size:
                return f"{value / size:.4g} {word}"
    if not unit and abs(value) >= 1e5:
        power = 0
        while abs(value) >= 1000 and power < len(_DECIMAL) - 1:
            value, power = value / 1000, power + 1
        return f"{value:.4g}{_DECIMAL[power]}"
    return f"{value:.4g} {unit}".rstrip()


def thinned(points: Sequence[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    """At most about ``most`` points: of each bucket its lowest and highest, never a mean."""
    if len(points) <= most:
        return list(points)
    size = math.ceil(len(points) / (most / 2))
    kept: list[tuple[float, float]] = []
    for at in range(0, len(points), size):
        bucket = points[at : at + size]
        ends = {min(bucket, key=lambda each: each[1]), max(bucket, key=lambda each: each[1])}
        kept.extend(sorted(ends))
    return kept


def real(value: object) -> float:
    """A finite number; raises ``ValueError`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return float(value)

"""Hosts against hosts: who is slow with everyone, and which path is slow alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from commcheck.report.charts.drawing import (
    LETTER,
    WIDTH,
    Drawing,
    Shape,
    Table,
    amount,
    label,
    real,
    shape,
)

MAX_SIDE: Final = 128
"""Rows and columns drawn whole; of a larger matrix only those with a value below the floor."""


def draw(data: Mapping[str, Any]) -> Drawing | None:
    """The drawing; None where nothing was measured."""
    unit = str(data["unit"])
    floor = None if data.get("floor") is None else real(data["floor"])
    columns = [str(each) for each in data["columns"]]
    rows = [
        (str(name), [None if value is None else real(value) for value in cells])
        for name, cells in zip(data["rows"], data["cells"], strict=True)
    ]
    if any(len(cells) != len(columns) for _, cells in rows):
        raise ValueError("rows of different lengths")
    rows = _worst(rows, floor)
    if len(columns) > MAX_SIDE:
        columns = columns[:MAX_SIDE]
        rows = [(name, cells[:MAX_SIDE]) for name, cells in rows]
    values = [value for _, cells in rows for value in cells if value is not None]
    if not values:
        return None
    left = min(150.0, 14 + LETTER * max(len(name) for name, _ in rows))
    side = min(26.0, (WIDTH - left - 12) / len(columns))
    shapes = list(_column_names(columns, left, side))
    top = 16.0
    for at, (name, cells) in enumerate(rows):
        y = top + at * side
        if side >= 10:
            shapes.append(label(left - 6, y + side / 2 + 4, name, "end"))
        for place, value in enumerate(cells):
            if value is not None:
                title = f"{name} with {columns[place]}: {amount(value, unit)}"
                shapes += _cell(left + place * side, y, side, value, max(values), floor, title)
    low = [
        (name, columns[at], amount(value, unit))
        for name, cells in rows
        for at, value in enumerate(cells)
        if value is not None and floor is not None and value < floor
    ]
    says = f"{len(values)} values from {amount(min(values), unit)} to {amount(max(values), unit)}"
    if floor is not None:
        says += f"; {len(low)} below {amount(floor, unit)}"
    height = int(top + len(rows) * side + 8)
    return Drawing(
        height, tuple(shapes), says, Table.of(("row", "column", "below the floor"), low, 50)
    )


def _worst(
    rows: list[tuple[str, list[float | None]]], floor: float | None
) -> list[tuple[str, list[float | None]]]:
    if len(rows) <= MAX_SIDE:
        return rows
    low = [
        row
        for row in rows
        if any(v is not None and floor is not None and v < floor for v in row[1])
    ]
    return (low or rows)[:MAX_SIDE]


def _column_names(columns: Sequence[str], left: float, side: float) -> Iterator[Shape]:
    longest = max(len(name) for name in columns)
    step = max(1, math.ceil(longest * LETTER / side))
    for at in range(0, len(columns), step):
        yield label(left + at * side, 11, columns[at])


def _cell(
    x: float, y: float, side: float, value: float, most: float, floor: float | None, title: str
) -> Iterator[Shape]:
    share = max(0.0, value / most) if most > 0 else 0.0
    yield shape(
        "rect", title=title, x=x + 0.5, y=y + 0.5, width=max(side - 1, 1), height=max(side - 1, 1),
        fill="#2f6fd0", fill_opacity=f"{0.12 + 0.78 * share:.2f}",
    )  # fmt: skip
    if floor is not None and value < floor:
        a, b = x + side * 0.2, x + side * 0.8
        c, d = y + side * 0.2, y + side * 0.8
        yield shape(
            "path", d=f"M{a:.1f} {c:.1f}L{b:.1f} {d:.1f}M{b:.1f} {c:.1f}L{a:.1f} {d:.1f}",
            stroke="#d03b2d", stroke_width="2", fill="none",
        )  # fmt: skip

"""Lines over an axis: bandwidth over size, time over bucket size, load over time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from commcheck.lazy import dataclass
from commcheck.report.charts.drawing import (
    INKS,
    LETTER,
    MAX_POINTS,
    WIDTH,
    Axis,
    Drawing,
    Shape,
    Table,
    amount,
    label,
    log_ticks,
    real,
    shape,
    thinned,
    ticks,
)

_DASHES: Final = {"measured": "", "predicted": "6 3", "other": "2 3"}


_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 118, 14, 40
_CURVE_HEIGHT: Final = 300


@dataclass(frozen=True, slots=True)
class _Series:
    name: str
    style: str
    points: list[tuple[float, float]]


def draw(data: Mapping[str, Any]) -> Drawing | None:
    """The drawing; None where there is no point."""
    series = [
        _Series(
            str(each["name"]),
            str(each.get("style", "other")),
            [(real(x), real(y)) for x, y in each["points"]],
        )
        for each in data["series"]
    ]
    lines = [(str(each["name"]), real(each["y"])) for each in data.get("lines", ())]
    points = [point for each in series for point in each.points]
    if not points:
        return None
    log = bool(data["x"].get("log"))
    xs, ys = [x for x, _ in points], [y for _, y in points] + [y for _, y in lines]
    if log and min(xs) <= 0:
        raise ValueError("a size that has no logarithm")
    across = Axis(min(xs), max(xs), _LEFT, WIDTH - _RIGHT, log)
    up = Axis(min(0.0, *ys), max(ys) * 1.06 or 1.0, _CURVE_HEIGHT - _BOTTOM, _TOP)
    most = MAX_POINTS // len(series)
    shapes = [
        *_curve_axes(data, across, up),
        *_bounds(lines, across, up),
        *(
            drawn
            for place, each in enumerate(series)
            for drawn in _line_of(each, INKS[place % len(INKS)], across, up, most)
        ),
        *_ends(series, up),
        *_marks(data, across, up),
    ]
    units = str(data["x"].get("unit", "")), str(data["y"].get("unit", ""))
    return Drawing(
        _CURVE_HEIGHT,
        tuple(shapes),
        f"{data['y']['label']} against {data['x']['label']}: "
        + ", ".join([each.name for each in series] + [name for name, _ in lines]),
        Table.of(
            ("series", str(data["x"]["label"]), str(data["y"]["label"])),
            [(each.name, amount(x, units[0]), amount(y, units[1]))
             for each in series for x, y in each.points],
        ),
    )  # fmt: skip


def _curve_axes(data: Mapping[str, Any], across: Axis, up: Axis) -> Iterator[Shape]:
    x_unit, y_unit = str(data["x"].get("unit", "")), str(data["y"].get("unit", ""))
    for value in ticks(up.low, up.high):
        y = up.at(value)
        yield shape("path", d=f"M{_LEFT} {y:.1f}H{across.end}", class_="c-grid", stroke="#8a939e",
                    stroke_width="0.4", fill="none")  # fmt: skip
        yield label(_LEFT - 6, y + 4, amount(value), "end")
    for value in (log_ticks if across.log else ticks)(across.low, across.high):
        yield label(across.at(value), up.start + 15, amount(value, x_unit), "middle")
    yield label((across.start + across.end) / 2, up.start + 32, str(data["x"]["label"]), "middle")
    yield label(4, 10, " ".join(filter(None, (str(data["y"]["label"]), y_unit))))


def _bounds(lines: Sequence[tuple[str, float]], across: Axis, up: Axis) -> Iterator[Shape]:
    for name, value in lines:
        y = up.at(value)
        yield shape("path", d=f"M{_LEFT} {y:.1f}H{across.end}", class_="c-bound", stroke="#d03b2d",
                    stroke_width="1.2", stroke_dasharray="8 3", fill="none")  # fmt: skip
        yield label(_LEFT + 6, y - 4, f"{name} {amount(value)}", class_="c-text c-halo")


def _line_of(series: _Series, ink: str, across: Axis, up: Axis, most: int) -> Iterator[Shape]:
    points = thinned(sorted(series.points), most)
    path = "".join(
        f"{'L' if at else 'M'}{across.at(x):.1f} {up.at(y):.1f}" for at, (x, y) in enumerate(points)
    )
    dash = _DASHES.get(series.style, "")
    more: dict[str, str] = {"stroke_dasharray": dash} if dash else {}
    yield shape("path", title=series.name, d=path, stroke=ink, stroke_width="1.8", fill="none",
                **more)  # fmt: skip
    if series.style == "measured" and len(points) <= 60:
        for x, y in points:
            yield shape("circle", cx=across.at(x), cy=up.at(y), r="2.6", fill=ink)


def _ends(series: Sequence[_Series], up: Axis) -> Iterator[Shape]:
    """Names at the ends of their lines, moved apart where they would lie on each other."""
    last = [(up.at(max(each.points)[1]) + 4, at) for at, each in enumerate(series) if each.points]
    floor = -math.inf
    for y, at in sorted(last):
        floor = max(y, floor + 13)
        room = int((_RIGHT - 10) / LETTER)
        name = series[at].name
        text = name if len(name) <= room else f"{name[: room - 1]}…"
        yield shape(
            "text", text, title=name, x=WIDTH - _RIGHT + 6, y=floor, font_size="11",
            fill=INKS[at % len(INKS)], class_="c-name",
        )  # fmt: skip


def _marks(data: Mapping[str, Any], across: Axis, up: Axis) -> Iterator[Shape]:
    for mark in data.get("marks", ()):
        x, y = across.at(real(mark["x"])), up.at(real(mark["y"]))
        text = str(mark["text"])
        yield shape("circle", title=text, cx=x, cy=y, r="5", fill="none", stroke="#d03b2d",
                    stroke_width="1.6")  # fmt: skip
        anchor = "end" if x > (across.start + across.end) / 2 else "start"
        yield label(
            x + (-8 if anchor == "end" else 8), max(y - 8, 12), text, anchor, "c-text c-halo"
        )

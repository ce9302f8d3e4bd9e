"""One training step on lanes: compute, communication, what is exposed, what is blank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from commcheck.report.charts.drawing import (
    LETTER,
    WIDTH,
    Axis,
    Drawing,
    Shape,
    Table,
    amount,
    label,
    real,
    shape,
    ticks,
)

_LANE, _LANE_GAP, _LANE_LEFT = 20, 8, 150

_NEAR: Final = 0.0006
"""Of the whole: a gap narrower than this is less than half a unit of the drawing."""

_Spoken = tuple[float, float, str, str]
"""Start, end, kind and words of a span."""

_KINDS: Final = {
    "compute": ("#2e7d4f", "compute"),
    "comm": ("#2f6fd0", "communication, hidden"),
    "exposed": ("#d03b2d", "communication, exposed"),
    "copy": ("#8a6d00", "memory copy"),
    "blank": ("none", "blank"),
}


def draw(data: Mapping[str, Any]) -> Drawing | None:
    """The drawing; None where no lane has a span."""
    unit = str(data["unit"])
    low, high = (real(each) for each in data["span"])
    across = Axis(low, high, _LANE_LEFT, WIDTH - 12)
    shapes: list[Shape] = []
    rows: list[tuple[str, ...]] = []
    seen: dict[str, None] = {}
    for at, lane in enumerate(data["lanes"]):
        y = 10 + at * (_LANE + _LANE_GAP)
        room = int((_LANE_LEFT - 10) / LETTER)
        shapes.append(label(_LANE_LEFT - 8, y + 14, str(lane["name"])[:room], "end"))
        totals: dict[str, float] = {}
        spans = [(real(a), real(b), str(kind), str(text)) for a, b, kind, text in lane["spans"]]
        for start, end, kind, _ in spans:
            totals[kind] = totals.get(kind, 0) + end - start
            seen.setdefault(kind)
        for start, end, kind, text in _joined(spans, (high - low) * _NEAR):
            title = f"{text}, {amount(end - start, unit)}"
            shapes.append(_span(across, start, end, kind, title, y))
        rows += [(str(lane["name"]), _KINDS[kind][1], amount(total, unit))
                 for kind, total in totals.items()]  # fmt: skip
    if not rows:
        return None
    bottom = 10 + len(data["lanes"]) * (_LANE + _LANE_GAP)
    for value in ticks(0, high - low):
        x = across.at(low + value)
        shapes.append(label(x, bottom + 12, amount(value, unit), "middle"))
        shapes.append(shape("path", d=f"M{x:.1f} 6V{bottom}", stroke="#8a939e", stroke_width="0.4",
                            fill="none"))  # fmt: skip
    shapes += _key(seen, bottom + 32)
    says = "; ".join(f"{lane}: {total} {what}" for lane, what, total in rows[:12])
    return Drawing(bottom + 42, tuple(shapes), says, Table.of(("lane", "what", "time"), rows))


def _joined(spans: list[_Spoken], near: float) -> Iterator[_Spoken]:
    """Spans of one kind that no screen could tell apart, as one."""
    open_: _Spoken | None = None
    count = 0
    for start, end, kind, text in sorted(spans):
        if open_ is not None and kind == open_[2] and start - open_[1] < near:
            count += 1
            open_ = (open_[0], max(open_[1], end), kind, f"{kind}, {count} together")
            continue
        if open_ is not None:
            yield open_
        open_, count = (start, end, kind, text), 1
    if open_ is not None:
        yield open_


def _span(across: Axis, start: float, end: float, kind: str, title: str, y: float) -> Shape:
    ink = _KINDS[kind][0]
    x = across.at(start)
    blank: dict[str, str] = (
        {"stroke": "#8a939e", "stroke_width": "0.8", "stroke_dasharray": "3 2"}
        if kind == "blank"
        else {}
    )
    return shape(
        "rect", title=title, x=x, y=y, width=max(across.at(end) - x, 0.4), height=_LANE, fill=ink,
        class_=f"c-{kind}", **blank,
    )  # fmt: skip


def _key(kinds: Mapping[str, None], y: float) -> Iterator[Shape]:
    """What the colours say. The same stands in each span's title and in the table."""
    x = float(_LANE_LEFT)
    for kind, (ink, word) in _KINDS.items():
        if kind in kinds:
            yield shape("rect", x=x, y=y - 9, width=10, height=10, fill=ink, stroke="#8a939e",
                        stroke_width="0.6", class_=f"c-{kind}")  # fmt: skip
            yield label(x + 14, y, word)
            x += 24 + LETTER * len(word)

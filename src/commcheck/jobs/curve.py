"""The picture of a sweep: busbw against size, with the bound."""

from __future__ import annotations

from collections.abc import Sequence

from commcheck.jobs.bound import Expectation
from commcheck.jobs.fit import Shape
from commcheck.jobs.reading import Row, Sweep
from commcheck.model import Figure, Words


def curve(sweep: Sweep, form: Shape, expected: Expectation | None, wanted: float | None) -> Figure:
    """Both placements over size on a log axis, in GB/s; ``wanted`` is the least that passes."""
    series = [
        {"name": name, "style": style, "points": points}
        for name, style, points in (
            ("out of place", "measured", _points(sweep.rows, "out_of_place")),
            ("in place", "other", _points(sweep.rows, "in_place")),
        )
        if points
    ]
    lines = []
    if expected is not None:
        lines.append({"name": expected.sum, "y": round(expected.gbytes, 2)})
    if wanted is not None:
        lines.append({"name": "least that passes", "y": round(wanted, 2)})
    marks = [{"x": form.peak_size, "y": form.peak, "text": f"{form.peak:.1f} GB/s"}]
    marks += [
        {"x": size, "y": dict(form.points).get(size, 0.0), "text": "wrong data"}
        for size in sweep.wrong
    ]
    where = ", ".join(sweep.hosts[:4]) + (" ..." if len(sweep.hosts) > 4 else "")
    name = sweep.collective or sweep.tool
    return Figure(
        form="curve",
        title=Words(
            f"{name}: bus bandwidth by message size{f', {where}' if where else ''}",
            f"{name}：总线带宽与消息大小{f'，{where}' if where else ''}",
        ),
        data={
            "x": {"label": "message size", "unit": "bytes", "log": True},
            "y": {"label": "busbw", "unit": "GB/s"},
            "series": series,
            "lines": lines,
            "marks": marks,
        },
    )


def _points(rows: Sequence[Row], placement: str) -> list[list[float]]:
    """The best of all cycles, one point a size."""
    best: dict[int, float] = {}
    for row in rows:
        half = row.out_of_place if placement == "out_of_place" else row.in_place
        if half is not None and row.size:
            best[row.size] = max(best.get(row.size, 0.0), half.busbw)
    return [[float(size), busbw] for size, busbw in sorted(best.items())]

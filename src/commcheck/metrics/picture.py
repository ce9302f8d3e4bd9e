"""The picture of a job's load: accelerators and links over time, with the red lines."""

from __future__ import annotations

from commcheck.metrics.curves import Curve
from commcheck.metrics.limits import Limits
from commcheck.metrics.load import Load
from commcheck.metrics.reading import Metrics
from commcheck.model import Figure, Words


def curves(metrics: Metrics, load: Load, limits: Limits) -> Figure:
    """Percent over minutes before the end of what was read."""
    series = []
    if load.compute is not None:
        points = _points(metrics, load.compute.curve)
        series.append({"name": load.compute.measure, "style": "measured", "points": points})
    for link in load.links:
        points = _points(metrics, link.share)
        series.append({"name": link.name, "style": "other", "points": points})
    lines = [{"name": "a link is full", "y": round(100 * limits.link_high, 1)}]
    if load.compute is not None:
        lines.append({"name": "hardly computes", "y": round(100 * load.compute.low, 1)})
        if load.compute.high > load.compute.low:
            lines.append({"name": "computes", "y": round(100 * load.compute.high, 1)})
    return Figure(
        form="curve",
        title=Words(
            f"How busy {load.noun}s and links were: {metrics.names[0]}",
            f"{load.noun} 与链路的繁忙程度：{metrics.names[0]}",
        ),
        data={
            "x": {"label": "time", "unit": "min", "log": False},
            "y": {"label": "busy", "unit": "%"},
            "series": [each for each in series if each["points"]],
            "lines": lines,
            "marks": [],
        },
    )


def _points(metrics: Metrics, curve: Curve) -> list[list[float]]:
    """Minutes before the last instant (0), and percent."""
    last = metrics.points - 1
    return [
        [round((place - last) * metrics.step_s / 60, 2), round(100 * value, 1)]
        for place, value in enumerate(curve)
        if value is not None
    ]

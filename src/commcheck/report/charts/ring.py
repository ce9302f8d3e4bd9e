"""A ring of ranks over hosts, and how often it leaves one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import groupby
from typing import Any, Final

from commcheck.report.charts.drawing import (
    INKS,
    WIDTH,
    Drawing,
    Shape,
    Table,
    label,
    shape,
)

_RING_HEIGHT: Final = 360
_MAX_ARCS: Final = 360


def draw(data: Mapping[str, Any]) -> Drawing | None:
    """The drawing; None where nobody is in the ring."""
    order = [(int(each["rank"]), str(each["host"])) for each in data["order"]]
    if not order:
        return None
    crossings, minimum = int(data["crossings"]), int(data["minimum"])
    hosts = list(dict.fromkeys(host for _, host in order))
    stays = [(host, [rank for rank, _ in group]) for host, group in groupby(order, lambda o: o[1])]
    cx, cy, radius = WIDTH / 2, _RING_HEIGHT / 2, 120.0
    shapes: list[Shape] = []
    start = 0
    for host, ranks in stays[:_MAX_ARCS]:
        begin, stop = start / len(order), (start + len(ranks)) / len(order)
        ink = INKS[hosts.index(host) % len(INKS)]
        title = f"{host}: ranks {', '.join(map(str, ranks[:16]))}{', …' if len(ranks) > 16 else ''}"
        shapes.append(
            shape("path", title=title, d=_arc(cx, cy, radius, begin, stop), stroke=ink,
                  stroke_width="18", fill="none")
        )  # fmt: skip
        if len(stays) <= 24:
            angle = math.tau * (begin + stop) / 2 - math.pi / 2
            x, y = cx + (radius + 18) * math.cos(angle), cy + (radius + 18) * math.sin(angle)
            anchor = "start" if x > cx + 8 else "end" if x < cx - 8 else "middle"
            shapes.append(label(x, y + 4, host, anchor))
        start += len(ranks)
    missing = [int(rank) for rank in data.get("missing", ())]
    says = f"{crossings} of {len(order)} steps leave a host; {minimum} would do"
    if missing:
        says += f"; ranks that never came: {', '.join(map(str, missing[:16]))}"
    shapes.append(label(cx, cy - 4, f"{crossings} crossings", "middle"))
    shapes.append(label(cx, cy + 12, f"{minimum} would do", "middle"))
    rows = [(host, ", ".join(map(str, ranks[:32]))) for host, ranks in stays]
    return Drawing(
        _RING_HEIGHT, tuple(shapes), says, Table.of(("host", "ranks in the ring's order"), rows)
    )


def _arc(cx: float, cy: float, radius: float, begin: float, stop: float) -> str:
    stop = min(stop, begin + 0.9999)  # a whole circle has no arc
    gap = min(0.002, (stop - begin) / 8)
    ends = [
        (cx + radius * math.cos(angle), cy + radius * math.sin(angle))
        for angle in (math.tau * (each) - math.pi / 2 for each in (begin + gap, stop - gap))
    ]
    large = int(stop - begin > 0.5)
    (x0, y0), (x1, y1) = ends
    return f"M{x0:.1f} {y0:.1f}A{radius:.0f} {radius:.0f} 0 {large} 1 {x1:.1f} {y1:.1f}"

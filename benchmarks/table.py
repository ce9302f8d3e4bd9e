"""A measurement as a line of the table, and the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.measure import Cost

HEADER = ("what", "who", "wall s", "CPU s", "CPU ratio", "RSS MB", "processes", "", "hold")


@dataclass(frozen=True, slots=True)
class Row:
    """One line. ``hosts``: 0 where there are none. ``hold``: what it is held to, in words."""

    what: str
    who: str
    hosts: int
    cost: Cost
    extra: str = ""
    hold: str = ""

    @property
    def told(self) -> str:
        """What was measured beside time and memory."""
        each = f"{self.cost.cpu_s / self.hosts * 1e3:.1f} ms CPU a host" if self.hosts > 1 else ""
        return "; ".join(text for text in (each, self.extra) if text)


def table(rows: Sequence[Row]) -> list[str]:
    """Markdown. The ratio is to commcheck's CPU in the same measurement."""
    base = {row.what: row.cost.cpu_s for row in reversed(rows)}  # it is the first of each
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    for row in rows:
        cells = (
            row.what,
            row.who,
            f"{row.cost.wall_s:.2f}",
            f"{row.cost.cpu_s:.2f}",
            f"{row.cost.cpu_s / base[row.what]:.1f} x",
            f"{row.cost.rss_mb:.0f}",
            str(row.cost.processes),
            row.told,
            row.hold,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return lines

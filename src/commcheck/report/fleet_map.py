"""The fleet as a drawing in which one bad host among thousands is seen.

Only hosts that do not pass get a row; every run of passing hosts between them is one pale band. One
path for each status keeps the page small, and presentation attributes colour it where no style is
allowed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from commcheck.lazy import dataclass
from commcheck.model import Layer
from commcheck.report.counts import many
from commcheck.report.fleet import Verdicts
from commcheck.report.ranges import fold_hosts
from commcheck.report.words import LOUD, MARKS

LEFT: Final = 200
"""Units for the names of hosts; the columns of checks are right of them."""

TOP: Final = 18
"""Units for a line of layers' names; each further line takes ``_NAME_HEIGHT`` more."""

_NAME_HEIGHT: Final = 12
_LETTER: Final = 5.7
"""Units of a letter in a name of a layer, on average."""

WIDTH: Final = 1000
BAND: Final = 5
_LABEL_EVERY: Final = 13
_MOST_BANDS: Final = 200
"""Bands with a title of their own; more are one path."""

_COLOURS: Final = {
    "fail": "#d03b2d",
    "error": "#b25e00",
    "warn": "#8a6d00",
    "gated": "#7a8591",
    "skip": "#c3cbd4",
}


@dataclass(frozen=True, slots=True)
class Band:
    """A run of hosts of which nothing is wrong."""

    y: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Label:
    """A word beside the map."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Stroke:
    """All cells of one tone, as one path."""

    tone: str
    colour: str
    path: str


@dataclass(frozen=True, slots=True)
class Row:
    """What is under the pointer at a height: one host, or the hosts of a band."""

    y: float
    height: float
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FleetMap:
    """The drawing, and ``rows`` by which a script says what is under the pointer."""

    height: int
    top: int  # of the first row
    bands: tuple[Band, ...]
    more_bands: str  # a path
    strokes: tuple[Stroke, ...]
    hosts: tuple[Label, ...]
    layers: tuple[Label, ...]
    lines: tuple[float, ...]  # x of the borders between layers
    rows: tuple[Row, ...]  # every row and band, downwards
    says: str


def fleet_map(whole: Verdicts, order: Sequence[str]) -> FleetMap | None:
    """The map; None where every host passes, or there is but one. ``order``: of the inventory."""
    words = {host: pattern for pattern, hosts in whole.patterns for host in hosts}
    names = [host for host in order if host in words]
    loud = {host for host in names if not set(LOUD).isdisjoint(words[host])}
    if len(names) < 2 or not loud or not whole.checks:
        return None
    row = 16.0 if len(loud) <= 40 else 4.0 if len(loud) <= 200 else 3.0
    width = (WIDTH - LEFT) / len(whole.checks)
    layers, lines, top = _layers(whole.checks, width)
    y = float(top)
    bands: list[Band] = []
    rows: list[Row] = []
    labels: list[Label] = []
    cells: defaultdict[str, list[str]] = defaultdict(list)
    last_label = -_LABEL_EVERY * 1.0
    for bad, run in groupby(names, key=loud.__contains__):
        members = list(run)
        if not bad:
            title = f"{many(len(members), 'host')} without a fault: {fold_hosts(members)[:200]}"
            bands.append(Band(round(y, 1), BAND, title))
            rows.append(Row(round(y, 1), BAND + 1, tuple(members)))
            y += BAND + 1
            continue
        for host in members:
            _cells(cells, words[host], y, width, row)
            rows.append(Row(round(y, 1), row, (host,)))
            if y - last_label >= _LABEL_EVERY:
                labels.append(Label(LEFT - 6, round(y + min(row, 12) - 2, 1), _short(host)))
                last_label = y
            y += row
    kept, rest = bands[:_MOST_BANDS], bands[_MOST_BANDS:]
    return FleetMap(
        height=int(y) + 4,
        top=top,
        bands=tuple(kept),
        more_bands="".join(f"M{LEFT} {band.y:g}h{WIDTH - LEFT}v{BAND}H{LEFT}z" for band in rest),
        strokes=tuple(
            Stroke(tone, colour, "".join(cells[tone]))
            for tone, colour in _COLOURS.items()
            if cells[tone]
        ),
        hosts=tuple(labels),
        layers=layers,
        lines=lines,
        rows=tuple(rows),
        says=f"{many(len(loud), 'host')} of {len(names):,} did not pass",
    )


def _cells(
    cells: Mapping[str, list[str]], words: Sequence[str], y: float, width: float, row: float
) -> None:
    """One host's row: a rectangle for each stretch of equal tone; what passed is left pale."""
    tall = row - (2 if row > 8 else 0.5)
    at = 0
    for tone, run in groupby(words, key=lambda word: MARKS[word].tone):
        count = len(list(run))
        x, w = LEFT + at * width, count * width
        at += count
        if tone == "pass":
            continue
        high = tall / 2 if tone == "warn" else tall  # told by shape too, not by colour alone
        cells[tone].append(f"M{x:.5g} {y:.5g}h{w:.4g}v{high:g}h-{w:.4g}z")


def _layers(
    checks: Sequence[str], width: float
) -> tuple[tuple[Label, ...], tuple[float, ...], int]:
    """The names of the layers, the borders between them, and where the first row may begin.

    Most checks are of one layer: a name that would run into another stands in a line below it.
    """
    labels, lines = [], []
    ends: list[float] = []  # of the lines of names
    at = 0
    for layer, run in groupby(checks, key=Layer.of):
        border = LEFT + at * width
        long = _LETTER * len(layer.value)
        x = min(border + 2, WIDTH - long)
        line = next((number for number, end in enumerate(ends) if end < x), len(ends))
        ends[line : line + 1] = [x + long]
        labels.append(Label(round(x, 1), TOP - 6 + line * _NAME_HEIGHT, layer.value))
        if at:
            lines.append(round(border, 1))
        at += len(list(run))
    return tuple(labels), tuple(lines), TOP + (len(ends) - 1) * _NAME_HEIGHT


def _short(host: str) -> str:
    return host if len(host) <= 26 else f"{host[:12]}…{host[-13:]}"

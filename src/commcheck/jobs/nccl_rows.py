"""The rows of nccl-tests' tables: columns by the header, and whether a row's numbers agree."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from commcheck.jobs.reading import (
    COLLECTIVES,
    Half,
    Iterations,
    Row,
    element_bytes,
    factor,
)
from commcheck.lazy import dataclass, regex

_TIMES: Final = ("time", "cputime")
_SIZES: Final = ("size", "bytes")
_CHECKS: Final = ("#wrong", "error", "res")
_PER_ITERATION: Final = ("i_min", "i_max", "i_p99", "i_cv%")
_REDOPS: Final = frozenset({"sum", "prod", "max", "min", "avg", "mulsum", "none", "all"})
_NUMBER: Final = regex(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|N/A|-?nan|-?inf")
_WHOLE: Final = regex(r"\d+")
_DATE: Final = regex(r"\d{4}-\d\d-\d\d")
_CLOCK: Final = regex(r"\d\d:\d\d:\d\d")


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a header: ``left`` of the first time, and of one placement each."""

    left: tuple[str, ...]
    halves: tuple[tuple[str, ...], ...]
    placements: tuple[str, ...]  # "out-of-place", "in-place"
    timestamp: bool
    milliseconds: bool  # 1.0
    layout: str

    @property
    def counts_wrong(self) -> bool:
        """The last column counts wrong elements; before 2.13 it is a deviation."""
        return self.halves[0][3] == "#wrong"

    def width(self, tokens: Sequence[str]) -> int:
        """Fields of a row. 2.10 and 2.11 leave redop empty where it means nothing."""
        width = len(self.left) + sum(map(len, self.halves)) + 2 * self.timestamp
        at = self.left.index("redop") if "redop" in self.left and "root" not in self.left else None
        if at is not None and len(tokens) > at and tokens[at] not in _REDOPS:
            width -= 1
        return width


@dataclass(frozen=True, slots=True)
class Raw:
    """A row as printed, times in microseconds."""

    size: int
    count: int
    dtype: str
    redop: str
    root: int | None
    halves: tuple[Half | None, Half | None]


def number(text: str) -> float | None:
    """A printed number; None for N/A and what is no number."""
    if text == "N/A" or not _NUMBER.fullmatch(text):
        return None
    return float(text)


def columns_of(text: str, above: str) -> Columns | None:
    """The columns, where a line is a header we know; ``above`` is the line over it."""
    words = text.lstrip("# ").split()
    if not words or words[0] not in _SIZES or "busbw" not in words:
        return None
    timestamp = words[-1] == "timestamp"
    if timestamp:
        words = words[:-1]
    starts = [at for at, word in enumerate(words) if word in _TIMES]
    if not starts or len(starts) > 2:
        return None
    left = tuple(
        {"bytes": "size", "N": "count", "op": "redop"}.get(w, w) for w in words[: starts[0]]
    )
    halves = tuple(
        tuple(words[start:end]) for start, end in zip(starts, [*starts[1:], None], strict=True)
    )
    for half in halves:
        if half[1:3] != ("algbw", "busbw") or len(half) < 4 or half[3] not in _CHECKS:
            return None
        if half[4:] not in ((), _PER_ITERATION):
            return None
    if left[:3] != ("size", "count", "type") or set(left[3:]) - {"redop", "root"}:
        return None
    placements: tuple[str, ...] = ("out-of-place", "in-place")
    if len(halves) == 1:
        placements = ("in-place",) if "in-place" in above else ("out-of-place",)
    return Columns(
        left=left,
        halves=halves,
        placements=placements,
        timestamp=timestamp,
        milliseconds=words[0] == "bytes",
        layout=_layout(words, halves[0]),
    )


def _layout(words: Sequence[str], half: Sequence[str]) -> str:
    if words[0] == "bytes":
        return "1.0"
    if half[3] == "error":
        return "2.0 to 2.11"
    return "2.19.2 or newer, per iteration" if len(half) > 4 else "2.13 or newer"


def begins(tokens: Sequence[str]) -> bool:
    """True for the first piece of a row: size, count and type."""
    return (
        len(tokens) >= 3
        and _WHOLE.fullmatch(tokens[0]) is not None
        and _WHOLE.fullmatch(tokens[1]) is not None
        and element_bytes(tokens[2]) is not None
    )


def continues(tokens: Sequence[str], columns: Columns) -> bool:
    """True for a later piece: numbers, and a time where the header has one."""
    return all(
        _NUMBER.fullmatch(token)
        or (columns.timestamp and (_DATE.fullmatch(token) or _CLOCK.fullmatch(token)))
        for token in tokens
    )


def take(tokens: Sequence[str], columns: Columns) -> Raw | None:
    """A row from as many fields as the header has; None where a field is not of its kind."""
    tokens = list(tokens)
    wanted = columns.width(tokens)
    if len(tokens) != wanted:
        return None
    left = list(columns.left)
    if wanted < len(left) + sum(map(len, columns.halves)) + 2 * columns.timestamp:
        left.remove("redop")
    if columns.timestamp and not (_DATE.fullmatch(tokens[-2]) and _CLOCK.fullmatch(tokens[-1])):
        return None
    fields = dict(zip(left, tokens, strict=False))
    redop, root = fields.get("redop", "none"), fields.get("root")
    if redop not in _REDOPS or (root is not None and not re.fullmatch(r"-1|\d+", root)):
        return None
    halves: dict[str, Half] = {}
    at = len(left)
    for name, names in zip(columns.placements, columns.halves, strict=True):
        half = _half(dict(zip(names, tokens[at : at + len(names)], strict=True)), columns)
        if half is None:
            return None
        halves[name] = half
        at += len(names)
    return Raw(
        size=int(fields["size"]),
        count=int(fields["count"]),
        dtype=fields["type"],
        redop=redop,
        root=None if root is None else int(root),
        halves=(halves.get("out-of-place"), halves.get("in-place")),
    )


def _half(fields: dict[str, str], columns: Columns) -> Half | None:
    time = number(fields.get("time", fields.get("cputime", "")))
    algbw, busbw = number(fields["algbw"]), number(fields["busbw"])
    if time is None or algbw is None or busbw is None:
        return None
    if min(time, algbw, busbw) < 0 or math.inf in (time, algbw, busbw):
        return None
    check = next(name for name in _CHECKS if name in fields)
    if not _NUMBER.fullmatch(fields[check]):
        return None
    value = number(fields[check])
    if check == "#wrong" and value is not None and (value < 0 or not value.is_integer()):
        return None
    iterations = None
    if "i_min" in fields:
        parts = [number(fields[name]) for name in _PER_ITERATION]
        if any(part is None for part in parts):
            return None
        low, high, p99, spread = (part for part in parts if part is not None)
        iterations = Iterations(low, high, p99, spread)
    return Half(
        time_us=time * 1000 if columns.milliseconds else time,
        algbw=algbw,
        busbw=busbw,
        wrong=value if check == "#wrong" else None,
        delta=None if check == "#wrong" else value,
        iterations=iterations,
    )


# --- do the numbers agree? ----------------------------------------------------------------------


def guess(rows: Sequence[Raw], nranks: int | None) -> str | None:
    """The collective that the columns and ratios leave; None where they leave several.

    Layouts before 2.16.7 do not name it. A damaged row or two are outvoted.
    """
    told = [
        row for row in rows if row.size and any(half and half.algbw >= 1 for half in row.halves)
    ]
    if not told or nranks is None or nranks < 2:
        return None
    votes = {
        name: sum(_could_be(name, row, nranks) for row in told)
        for name in COLLECTIVES
        if name not in ("alltoallv", "hypercube")
    }
    most = max(votes.values())
    left = {name for name, count in votes.items() if count == most and count > len(told) / 2}
    if left == {"all_gather", "alltoall"}:
        return _gather_or_alltoall(told)
    return left.pop() if len(left) == 1 else None


def _gather_or_alltoall(rows: Sequence[Raw]) -> str | None:
    """alltoall does not check in place; all_gather does."""
    both = [row.halves for row in rows if row.halves[0] and row.halves[1]]
    if any(_checked(inside) for _, inside in both if inside):
        return "all_gather"
    return "alltoall" if any(_checked(outside) for outside, _ in both if outside) else None


def _checked(half: Half) -> bool:
    return half.wrong is not None or half.delta is not None


_REDUCING: Final = ("all_reduce", "reduce_scatter", "reduce")
_ROOTED: Final = ("broadcast", "reduce", "scatter", "gather")
_PIECES: Final = ("all_gather", "reduce_scatter", "alltoall", "scatter", "gather", "alltoallv")


def _could_be(name: str, row: Raw, nranks: int) -> bool:
    if (name in _REDUCING) != (row.redop != "none"):
        return False
    if row.root is not None and (name in _ROOTED) != (row.root >= 0):
        return False
    if row.root is None and name in _ROOTED:
        return False
    width = element_bytes(row.dtype)
    pieces = nranks if name in _PIECES else 1
    if width is None or row.size != row.count * width * pieces:
        return False
    return all(
        half is None or agrees(half.busbw, half.algbw * factor(name, nranks), 0.005 * 3)
        for half in row.halves
    )


def agrees(printed: float, computed: float, absolute: float) -> bool:
    """Equal within rounding: the columns have two decimals, and large ones fewer."""
    return abs(printed - computed) <= absolute + 0.01 * max(abs(computed), abs(printed))


def judged(raw: Raw, collective: str | None, nranks: int | None) -> Row:
    """The row, with what contradicts in it; precise busbw is left as printed."""
    row = Row(raw.size, raw.count, raw.dtype, raw.redop, raw.root, raw.halves[0], raw.halves[1])
    width = element_bytes(raw.dtype)
    pieces = (
        {1, nranks or 1}
        if collective is None
        else {(nranks or 1) if collective in (*_PIECES, "hypercube") else 1}
    )
    if width is not None and raw.size not in {raw.count * width * each for each in pieces}:
        return replace(row, doubt=f"size {raw.size} is not {raw.count} x {raw.dtype}")
    for half in row.halves:
        if doubt := _doubt(raw.size, half, collective, nranks):
            return replace(row, doubt=doubt)
    return row


def _doubt(size: int, half: Half, collective: str | None, nranks: int | None) -> str:
    if half.time_us <= 0:
        return "" if size == 0 else "a time of 0"
    algbw = size / half.time_us / 1e3
    share = 1.0
    if collective == "hypercube" and nranks:
        share = (nranks - 1) / nranks
    times = None if nranks is None or collective is None else factor(collective, nranks)
    early = times is not None and agrees(half.algbw, algbw * times, 0.005 * (1 + times))
    if not agrees(half.algbw, algbw * share, 0.005) and not (
        # Builds before June 2020 print algbw of all_gather and reduce_scatter multiplied already.
        early and half.algbw == half.busbw
    ):
        return f"algbw {half.algbw:g} is not {size} bytes in {half.time_us:g} us"
    if times is None:
        known = {factor(name, nranks) for name in COLLECTIVES} if nranks else set()
        fits = any(agrees(half.busbw, half.algbw * each, 0.015) for each in known)
        return "" if fits or not known else f"busbw {half.busbw:g} fits no collective"
    wanted = half.algbw if early and half.algbw == half.busbw else half.algbw * times
    if not agrees(half.busbw, wanted, 0.005 * (1 + times)):
        return f"busbw {half.busbw:g} is not algbw {half.algbw:g} x {times:.3g}"
    return ""

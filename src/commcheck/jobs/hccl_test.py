"""hccl_test (Ascend): its table of sizes, its verdicts on the data and its errors.

It names neither hosts nor ranks nor itself: what was run is told by whoever ran it. It prints an
algorithm bandwidth only; documented builds divide by 2^30 and others by 1e9, so time and size
alone are taken. Newer builds know only the root's own result in the row, so the lines of other
ranks count as well. Source: CANN tools/hccl_test, common/src.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from commcheck.errors import ParseError
from commcheck.jobs.failures import read_failures
from commcheck.jobs.lines import Line, lines_of
from commcheck.jobs.reading import Failure, Half, Row, State, Sweep, factor
from commcheck.lazy import regex

_CONFIG: Final = regex(
    r"the minbytes is (\d+), maxbytes is (\d+), iters is (\d+), warmup_iters is (\d+)"
)
_HEADER: Final = regex(r"data_size\(Bytes\): *\| *a\w+_time\(us\): *\| *alg_bandwidth")
_ROW: Final = regex(
    r"\s*(?P<size>\d+)\s*\|\s*(?P<time>\d+\.\d\d)\s*\|\s*(?P<algbw>\d+\.\d{5})\s*\|"
    r"\s*(?P<check>success|failed|NULL)\s*"
)
_FAILED: Final = regex(r"(?:local )?rank[ _]id[ :]*(\d+), check result failed")
_GIB_BUILD: Final = 1e9 / 2**30


def looks_like(text: str) -> bool:
    """True where a text is this tool's output."""
    return bool(_CONFIG.search(text) or _HEADER.search(text))


def parse(
    text: str, *, collective: str | None = None, nranks: int | None = None
) -> tuple[Sweep, ...]:
    """The runs in a text. busbw needs ``collective`` and ``nranks``; without them it is algbw."""
    runs: list[list[Line]] = [[]]
    for line in lines_of(text):
        if _CONFIG.search(line.text) and any(_CONFIG.search(each.text) for each in runs[-1]):
            runs.append([])
        runs[-1].append(line)
    sweeps = tuple(_sweep(lines, collective, nranks) for lines in runs)
    if all(sweep.state is State.NO_TABLE for sweep in sweeps):
        raise ParseError("hccl_test", text, "its table, or a failure we know")
    return sweeps


def _sweep(lines: Sequence[Line], collective: str | None, nranks: int | None) -> Sweep:
    config = next((found for line in lines if (found := _CONFIG.search(line.text))), None)
    header = any(_HEADER.search(line.text) for line in lines)
    matches = [found for line in lines if header and (found := _ROW.fullmatch(line.text))]
    times = factor(collective, nranks) if collective and nranks else 1.0
    rows = [_row(match, times) for match in matches]
    gib = bool(rows) and all(_ratio_is(match, _GIB_BUILD) for match in matches)
    judged = [
        row if gib else _doubted(row, match) for row, match in zip(rows, matches, strict=True)
    ]
    ranks = sorted({int(found[1]) for line in lines if (found := _FAILED.search(line.text))})
    failures = read_failures(lines)
    checks = {match["check"] for match in matches}
    complete = config is not None and _reaches_the_end(judged, config)
    trusted = tuple(row for row in judged if not row.doubt)
    return Sweep(
        tool="hccl_test",
        state=_state(failures, header=header, rows=bool(trusted), complete=complete),
        layout="GiB/s build" if gib else "GB/s build",
        collective=collective,
        nranks=nranks,
        rows=trusted,
        doubtful=tuple(row for row in judged if row.doubt),
        validation=None if not checks else checks != {"NULL"},
        out_of_bounds=sum(match["check"] == "failed" for match in matches) or len(ranks),
        failed_ranks=tuple(ranks),
        iterations=int(config[3]) if config else None,
        warmup=int(config[4]) if config else None,
        problems=_problems(judged, int(config[1])) if complete and config else (),
        failures=failures,
        log=tuple(line.text for line in lines if "HCCL" in line.text and "](" in line.text),
    )


def _row(match: re.Match[str], times: float) -> Row:
    size, time = int(match["size"]), float(match["time"])
    algbw = size / time / 1e3 if time else 0.0
    wrong = {"success": 0.0, "failed": 1.0, "NULL": None}[match["check"]]
    half = Half(time, algbw, algbw * times, wrong)
    return Row(size, None, "", "", None, half, None)


def _ratio_is(match: re.Match[str], ratio: float) -> bool:
    """Five decimals of bandwidth, computed from a time that is printed with two."""
    time, printed = float(match["time"]), float(match["algbw"])
    if time <= 0:
        return False
    wanted = int(match["size"]) / time / 1e3 * ratio
    return abs(printed - wanted) <= 1e-5 + (1e-4 + 0.006 / time) * wanted


def _doubted(row: Row, match: re.Match[str]) -> Row:
    if _ratio_is(match, 1.0):
        return row
    printed, half = match["algbw"], row.halves[0]
    return replace(row, doubt=f"{printed} GB/s is not {row.size} bytes in {half.time_us:g} us")


def _state(failures: tuple[Failure, ...], *, header: bool, rows: bool, complete: bool) -> State:
    real = [each for each in failures if not each.consequence]
    if complete:
        return State.COMPLETE_THEN_CRASHED if real else State.COMPLETE
    if rows and any(each.slug == "launcher-timeout" for each in failures):
        return State.TIMEOUT
    if failures:
        return State.CRASHED if rows else State.LAUNCH_FAILED
    return State.TRUNCATED if header or rows else State.NO_TABLE


def _reaches_the_end(rows: Sequence[Row], config: re.Match[str]) -> bool:
    """It prints no footer: the last size must be the last that fits below maxbytes.

    Sizes are aligned down, by less than 1 %.
    """
    if not rows:
        return False
    most, last = int(config[2]), rows[-1].size
    if last >= most * 0.99:
        return True
    if len(rows) < 2:
        return False
    by_factor = rows[-1].size * rows[-1].size / max(rows[-2].size, 1)
    by_step = 2 * rows[-1].size - rows[-2].size
    regular = len(rows) > 2 and not _jumps(rows)
    return regular and min(by_factor, by_step) > most


def _jumps(rows: Sequence[Row]) -> list[int]:
    """Sizes before which a row is missing: neither the ratio nor the step of the sweep holds."""
    sizes = [row.size for row in rows]
    if len(sizes) < 3:
        return []
    ratios = [after / max(before, 1) for before, after in pairwise(sizes)]
    steps = [after - before for before, after in pairwise(sizes)]
    ratio, step = sorted(ratios)[len(ratios) // 2], sorted(steps)[len(steps) // 2]
    by_ratio = [
        s for s, each in zip(sizes[1:], ratios, strict=True) if abs(each - ratio) > 0.1 * ratio
    ]
    by_step = [
        s for s, each in zip(sizes[1:], steps, strict=True) if abs(each - step) > 0.1 * abs(step)
    ]
    return min(by_ratio, by_step, key=len)


def _problems(rows: Sequence[Row], least: int) -> tuple[str, ...]:
    missing = [*([least] if rows[0].size > least * 1.01 else []), *_jumps(rows)]
    return tuple(f"a row at or before {size} bytes is missing or damaged" for size in missing)

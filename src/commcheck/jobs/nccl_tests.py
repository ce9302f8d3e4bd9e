"""nccl-tests and rccl-tests: every table layout from 1.0 to the current.

Columns are taken from the header, rows are joined from the pieces into which NCCL's lines cut
them, and a row counts only if its own numbers agree: size with count and type, algbw with size
and time, busbw with algbw. What does not agree is kept as doubtful. Layouts: nccl-tests
src/common.cu of all tags.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise
from typing import Final

from commcheck.errors import ParseError
from commcheck.jobs import nccl_rows
from commcheck.jobs.failures import NIC_EVENT, failure_on, gather, warning_on
from commcheck.jobs.lines import Line, lines_of, without_nccl
from commcheck.jobs.nccl_rows import Columns
from commcheck.jobs.reading import COLLECTIVES, Failure, Rank, Row, State, Sweep
from commcheck.lazy import dataclass, regex
from commcheck.report.counts import many

_CONFIG: Final = regex(
    r"#? ?nThread (?P<threads>\d+) nGpus (?P<gpus>\d+) minBytes (?P<min>\d+) maxBytes (?P<max>\d+) "
    r"step: (?P<step>\d+)\((?P<kind>factor|bytes)\) warmup iters: (?P<warmup>\d+) "
    r"iters: (?P<iters>\d+)(?: agg iters: \d+)? validation: (?P<validation>\d+)"
)
_RANK: Final = regex(
    r"#\s+Rank\s+(?P<rank>\d+)(?:\s+Group\s+(?P<group>\d+))?(?:\s+Pid\s+(?P<pid>\d+))? on\s+"
    r"(?P<host>\S+) device\s+(?P<device>\d+) \[(?P<pci>[0-9a-fx:.]+)\] (?P<name>.*\S)"
)
_OUT_OF_BOUNDS: Final = regex(r"#? ?Out of bounds values : (\d+) (OK|FAILED)")
_AVERAGE: Final = regex(r"#? ?Avg bus bandwidth    : (\S+)")
_VERSION: Final = regex(r"# nccl-tests version (\S+)")
_RCCL: Final = regex(r"rccl-tests: Version (\S+)")
_STARTING: Final = regex(r"# Collective test (?:starting|concluded): (\w+?)_perf")
_BINARY: Final = regex(rf"(?:^|[/\s])({'|'.join(COLLECTIVES)})_perf(?:_mpi)?\b")
_JSON: Final = regex(r"# Writing JSON output to (\S+)")
_REDUCED: Final = regex(r"# Reducing maxBytes to (\d+)")
_LIBRARY: Final = regex(r"NCCL version (\d+\.\d+(?:\.\d+)*)")
_ENV: Final = regex(r"(?:^|\s)((?:NCCL|RCCL)_[A-Z0-9_]+)=(\S+)")
_CYCLE: Final = regex(r"# Testing (\d+) cycle")


@dataclass(slots=True)
class _Draft:
    """What has been read of one run."""

    lines: list[Line] = field(default_factory=list)
    config: re.Match[str] | None = None
    tool: str = "nccl-tests"
    version: str = ""
    library: str = ""
    collective: str | None = None
    ranks: list[Rank] = field(default_factory=list)
    blocks: int = 0  # "Using devices"
    last_comment: str = ""
    columns: Columns | None = None
    pending: list[str] = field(default_factory=list)
    raw: list[nccl_rows.Raw] = field(default_factory=list)
    out_of_bounds: list[int] = field(default_factory=list)
    averages: list[float] = field(default_factory=list)
    json_path: str = ""
    reduced_to: int | None = None
    env: dict[str, str] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    cycles: int = 1


def parse(text: str) -> tuple[Sweep, ...]:
    """The runs in a text, in order. Raises ``ParseError`` where nothing of the tool is in it."""
    runs = [_sweep(_read(lines)) for lines in _runs(lines_of(text))]
    known = tuple(run for run in runs if run.state is not State.NO_TABLE or run.ranks)
    if not known:
        raise ParseError("nccl-tests", text, "its table, or a failure we know")
    return known


def _runs(lines: Sequence[Line]) -> list[list[Line]]:
    """The lines of each run: a new one begins where a run that ended is followed by a new head."""
    runs: list[list[Line]] = [[]]
    begun, ended = False, False
    for line in lines:
        text = line.text
        if ended and (_CONFIG.match(text) or _VERSION.match(text) or _JSON.match(text)):
            # Footers of other processes (built without MPI) have no head of their own, and stay.
            runs.append([])
            begun, ended = False, False
        runs[-1].append(line)
        begun = begun or text.startswith("# Using devices")
        ended = ended or bool(_AVERAGE.match(text)) or (begun and failure_on(line) is not None)
    return runs


def _read(lines: Sequence[Line]) -> _Draft:
    draft = _Draft(lines=list(lines))
    for line in lines:
        rest, record = without_nccl(line.text)
        if record:
            draft.log.append(record)
            version = _LIBRARY.search(record)
            draft.library = draft.library or (version[1] if version else "")
            warning = warning_on(record, line.number)
            if warning is not None:
                draft.failures.append(warning)
        if rest.strip():
            _take(draft, Line(line.number, rest, line.rank))
    draft.pending = []
    return draft


def _take(draft: _Draft, line: Line) -> None:
    text = line.text
    if text.startswith("#") or _OUT_OF_BOUNDS.match(text) or _AVERAGE.match(text):
        draft.pending = []
        _take_comment(draft, text)
        return
    if _CONFIG.match(text):
        _take_comment(draft, text)
        return
    tokens = text.split()
    if draft.columns is not None and nccl_rows.begins(tokens):
        draft.pending = tokens
        _finish(draft)
        return
    if draft.columns is not None and draft.pending and nccl_rows.continues(tokens, draft.columns):
        draft.pending.extend(tokens)
        _finish(draft)
        return
    failure = failure_on(line)
    if failure is not None:
        draft.pending = []
        draft.failures.append(failure)
    elif rccl := _RCCL.match(text):
        draft.tool, draft.version = "rccl-tests", rccl[1]
    _take_words(draft, text)


def _take_comment(draft: _Draft, text: str) -> None:
    columns = nccl_rows.columns_of(text, draft.last_comment)
    if columns is not None:
        draft.columns = columns
    elif rank := _RANK.match(text):
        draft.ranks.append(
            Rank(
                rank=int(rank["rank"]),
                host=rank["host"],
                device=int(rank["device"]),
                name=rank["name"],
                group=int(rank["group"] or 0),
                pid=int(rank["pid"]) if rank["pid"] else None,
                pci=rank["pci"],
            )
        )
    elif config := _CONFIG.match(text):
        draft.config = draft.config or config
    elif text.startswith("# Using devices"):
        draft.blocks += 1
    elif found := _OUT_OF_BOUNDS.match(text):
        draft.out_of_bounds.append(int(found[1]))
    elif found := _AVERAGE.match(text):
        value = nccl_rows.number(found[1])
        if value is not None:
            draft.averages.append(value)
    elif found := _VERSION.match(text):
        draft.version = found[1]
    elif found := _STARTING.match(text):
        draft.collective = draft.collective or found[1]
    elif found := _JSON.match(text):
        draft.json_path = found[1]
    elif found := _REDUCED.match(text):
        draft.reduced_to = int(found[1])
    elif found := _CYCLE.match(text):
        draft.cycles = max(draft.cycles, int(found[1]))
    draft.last_comment = text


def _take_words(draft: _Draft, text: str) -> None:
    """A command line or a list of variables that somebody kept beside the output."""
    binary = _BINARY.search(text)
    if binary and draft.collective is None and "error" not in text:
        draft.collective = binary[1]
    for name, value in _ENV.findall(text):
        draft.env[name] = value


def _finish(draft: _Draft) -> None:
    """Take the pending fields as a row, once they are as many as the header says."""
    if draft.columns is None:
        return
    wanted = draft.columns.width(draft.pending)
    if len(draft.pending) < wanted:
        return
    raw = nccl_rows.take(draft.pending, draft.columns)
    draft.pending = []
    if raw is not None:
        draft.raw.append(raw)


# --- from the draft to the run ------------------------------------------------------------------


def _sweep(draft: _Draft) -> Sweep:
    group = [rank for rank in draft.ranks if rank.group == 0]
    several = sum(rank.rank == 0 for rank in draft.ranks) > 1 or draft.blocks > 1
    nranks = 1 if several else len(draft.ranks) or None
    in_group = len(group) or None
    collective = draft.collective or nccl_rows.guess(draft.raw, in_group)
    judged = [nccl_rows.judged(raw, collective, in_group) for raw in draft.raw]
    rows = [] if several else [row for row in judged if not row.doubt]
    doubtful = judged if several else [row for row in judged if row.doubt]
    validation = bool(int(draft.config["validation"])) if draft.config else None
    out_of_bounds = sum(draft.out_of_bounds) if draft.out_of_bounds else None
    expected = _expected(draft, judged)
    failures = gather(draft.failures, draft.lines)
    return Sweep(
        tool=draft.tool,
        state=_state(draft, failures, rows, several=several),
        layout=_layout(draft),
        version=draft.version,
        library=draft.library,
        collective=collective,
        nranks=nranks,
        ranks=tuple(draft.ranks),
        rows=tuple(rows),
        doubtful=tuple(doubtful),
        expected_rows=expected,
        validation=validation,
        out_of_bounds=out_of_bounds,
        avg_busbw=draft.averages[-1] if draft.averages else None,
        iterations=int(draft.config["iters"]) if draft.config else None,
        warmup=int(draft.config["warmup"]) if draft.config else None,
        tables=max(draft.blocks, 1),
        split=any(rank.group for rank in draft.ranks),
        reduced_to=draft.reduced_to,
        json_path=draft.json_path,
        env=draft.env,
        problems=() if several else _problems(draft, judged, expected),
        failures=failures,
        log=tuple(draft.log),
    )


def _state(
    draft: _Draft, failures: tuple[Failure, ...], rows: Sequence[Row], *, several: bool
) -> State:
    if several:
        return State.NOT_MULTI_RANK
    real = [each for each in failures if not each.consequence and each.slug != NIC_EVENT]
    if draft.averages and draft.out_of_bounds and draft.columns is not None:
        return State.COMPLETE_THEN_CRASHED if real else State.COMPLETE
    limits = ("test-timeout", "launcher-timeout")
    if draft.ranks and any(each.slug in limits for each in failures):
        return State.TIMEOUT
    if failures:
        return State.CRASHED if rows or draft.ranks else State.LAUNCH_FAILED
    return State.TRUNCATED if draft.columns is not None or draft.config else State.NO_TABLE


def _layout(draft: _Draft) -> str:
    if draft.columns is None:
        return ""
    return draft.columns.layout


def _expected(draft: _Draft, rows: Sequence[Row]) -> int | None:
    """Rows that the options ask for: sizes from minBytes to maxBytes, in every cycle."""
    if draft.config is None:
        return None
    size, most = int(draft.config["min"]), draft.reduced_to or int(draft.config["max"])
    step = int(draft.config["step"])
    if draft.config["kind"] == "bytes":
        sizes = 1 if step == 0 else (most - size) // step + 1
    else:
        sizes = 0
        while size <= most and sizes < 64:
            sizes += 1
            if step <= 1:
                break
            size *= step
    falls = sum(after.size < before.size for before, after in pairwise(rows))
    # Several types or operators (-d all) and run cycles (-N) begin again with the smallest size.
    return sizes * max(draft.cycles, falls + 1)


def _problems(draft: _Draft, rows: Sequence[Row], expected: int | None) -> tuple[str, ...]:
    """The integrity tests that a complete table must hold."""
    found = []
    if not draft.averages or not draft.out_of_bounds:
        return ()
    if expected is not None and len(rows) != expected:
        found.append(f"it has {many(len(rows), 'row')}, and its options ask for {expected}")
    cells = [half.busbw for row in rows for half in row.halves]
    average = draft.averages[-1]
    if cells and abs(sum(cells) / len(cells) - average) > 0.005 + 0.01 * abs(average):
        found.append(
            f"the mean of its rows is {sum(cells) / len(cells):.2f} GB/s, and the last line says "
            f"{average:g}: a row is missing or damaged"
        )
    ranks = sorted(rank.rank for rank in draft.ranks)
    if ranks != list(range(len(ranks))):
        found.append(f"the ranks in its head are not 0 to {len(ranks) - 1}, one line each")
    wrong = any(half.wrong for row in rows for half in row.halves)
    if wrong != bool(sum(draft.out_of_bounds)) and draft.columns and draft.columns.counts_wrong:
        found.append("the column #wrong and the line 'Out of bounds values' contradict each other")
    return tuple(found)

"""torch_npu's kernel_details.csv: every kernel and operator of a rank, where no trace is at hand.

So is msprof's op_summary_TIME.csv, with other names of its columns and no steps. Source: torch_npu
profiler/analysis, MindStudio "kernel_details" and "op_summary". Times in microseconds; a start may
end in a tab. Communication operators carry N/A for their ids. Without ``schedule=``, and for some
asynchronous warm-ups, there is no ``Step Id``; at Level0, the default, no core is told.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import field, replace
from io import TextIOWrapper
from pathlib import Path
from typing import Final, NamedTuple

from commcheck.files import lines_of, opened
from commcheck.lazy import dataclass, regex
from commcheck.trace import hcclgroups
from commcheck.trace.ascend import COMPUTE, MEMORY
from commcheck.trace.facts import RankFacts
from commcheck.trace.hcclnames import OF_HCCL, transfer_named
from commcheck.trace.microseconds import nanoseconds
from commcheck.trace.names import Kind
from commcheck.trace.read import host_of, rank_beside
from commcheck.trace.source import Foreign
from commcheck.trace.steps import measure
from commcheck.trace.store import Annotation, Trace

_FILE: Final = regex(r"kernel_details\.csv|op_summary_\w+\.csv")
_NAME, _START, _DURATION = "Name", "Start Time(us)", "Duration(us)"
_CORE, _STEP = "Accelerator Core", "Step Id"
_OF_MSPROF: Final = {
    "Op Name": _NAME,
    "Task Type": _CORE,
    "Task Start Time(us)": _START,
    "Task Duration(us)": _DURATION,
}
_UNTOLD: Final = "N/A"
_NEEDED: Final = (_NAME, _CORE, _START, _DURATION)

_LINE_MOST: Final = 1 << 20

Spans = dict[str, tuple[int, int]]
"""First start and last end by step."""


class _Row(NamedTuple):
    """A row as it counts; times in ns."""

    kind: Kind
    name: str
    start: int
    end: int
    stream: str
    step: str


@dataclass(frozen=True, slots=True)
class _Table:
    """What is read of a table. ``of_hccl``: kernels that count only where no operator does."""

    trace: Trace
    groups: hcclgroups.Groups
    steps: Spans = field(default_factory=dict)
    of_hccl: list[_Row] = field(default_factory=list)

    def add(self, row: _Row) -> None:
        """An event of the device, and of its step."""
        transfer = transfer_named(row.name)
        # Operators carry their number in their name: one code for all of a kind.
        name = transfer.kind if transfer else row.name
        device = self.trace.device("npu")
        code = self.trace.code(row.kind, name, "npu", row.stream)
        index = device.add(row.start, row.end, code)
        if transfer is not None:
            device.transfers[index] = (self.groups.told(transfer), -1)
        if row.step:
            first, last = self.steps.get(row.step, (row.start, row.end))
            self.steps[row.step] = (min(first, row.start), max(last, row.end))

    def end(self) -> None:
        """Nothing more comes."""
        if not any(device.transfers for device in self.trace.devices.values()):
            for row in self.of_hccl:
                self.add(row)
        _number(self.trace, self.steps)


def is_one(name: str) -> bool:
    """True where a file of that name is such a table."""
    return _FILE.fullmatch(name) is not None


def read(path: Path) -> tuple[RankFacts, ...]:
    """The facts of the table's rank. Raises ``Foreign`` where it is no such table."""
    trace = Trace(path.name, layout="ascend", backend="hccl", rank=rank_beside(path))
    trace.host = host_of(path)
    rows = _Table(trace, hcclgroups.beside(path))
    trace.world = rows.groups.world
    try:
        with TextIOWrapper(opened(path), newline="", encoding="utf-8-sig") as file:
            table = csv.DictReader(lines_of(file, _LINE_MOST))
            table.fieldnames = [_OF_MSPROF.get(name, name) for name in table.fieldnames or ()]
            missing = [name for name in _NEEDED if name not in table.fieldnames]
            if missing:
                what = f"has no column {missing[0]!r}; expected kernel_details.csv of torch_npu"
                raise Foreign(str(path), what)
            for number, row in enumerate(table, 2):
                _take(path, number, row, rows)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Foreign(str(path), f"cannot be read as a table: {error}") from None
    rows.end()
    if not trace.devices:
        raise Foreign(str(path), "has no row of a kernel; expected one for each")
    note = "from a table of kernels: whether they waited for their launches is not in it"
    return tuple(
        replace(
            facts,
            steps=tuple(replace(step, host_ns=None) for step in facts.steps),
            notes=(*facts.notes, note),
        )
        for facts in measure(trace)
    )


def _take(path: Path, number: int, row: Mapping[str, str | None], table: _Table) -> None:
    def ns(column: str) -> int:
        try:
            return nanoseconds((row.get(column) or "").strip())
        except ValueError as error:
            raise Foreign(str(path), f"line {number}: {column}: {error}") from None

    name, core = row.get(_NAME) or "", row.get(_CORE) or ""
    if transfer_named(name) is not None or OF_HCCL.search(name):
        kind = Kind.COMM
    elif COMPUTE.search(core):
        kind = Kind.COMPUTE
    elif MEMORY.search(name) or MEMORY.search(core):
        kind = Kind.MEM
    elif core == _UNTOLD:
        kind = Kind.COMPUTE  # the table holds operators alone
    else:
        return
    start = ns(_START)
    stream = (row.get("Stream ID") or "").strip() or _UNTOLD
    read = _Row(kind, name, start, start + ns(_DURATION), stream, (row.get(_STEP) or "").strip())
    if OF_HCCL.search(name):
        table.of_hccl.append(read)
    else:
        table.add(read)


def _number(trace: Trace, steps: Spans) -> None:
    """Each step until the next one begins, as on the device; none where no step is told."""
    begun = sorted((first, last, step) for step, (first, last) in steps.items())
    over = [max(last for _, last, _ in begun)] if begun else []
    ends = [first for first, _, _ in begun[1:]] + over
    for (first, _, step), end in zip(begun, ends, strict=True):
        trace.steps.append(Annotation(f"step {step}", first, end, 0))

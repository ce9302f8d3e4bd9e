"""torch_npu's step_trace_time.csv: steps already measured, where no trace_view.json is at hand.

Also cluster_step_trace_time.csv of msprof-analyze, one file for all ranks. Microseconds.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Final

from commcheck.files import read_whole
from commcheck.trace import hcclgroups
from commcheck.trace.facts import RankFacts, Step
from commcheck.trace.microseconds import nanoseconds
from commcheck.trace.read import host_of, rank_beside
from commcheck.trace.source import Foreign

NAMES: Final = ("step_trace_time.csv", "cluster_step_trace_time.csv")
_COMPUTE, _COMM, _FREE = "Computing", "Communication", "Free"
_EXPOSED, _OVERLAPPED, _BUBBLE = "Communication(Not Overlapped)", "Overlapped", "Bubble"
_NEEDED: Final = (_COMPUTE, _EXPOSED, _OVERLAPPED, _COMM, _FREE)
_BYTES_MOST: Final = 64 << 20
"""A row is a step of a rank, some hundred bytes, and all are held."""


def is_one(name: str) -> bool:
    """True where a file of that name is such a table."""
    return name in NAMES


def read(path: Path) -> tuple[RankFacts, ...]:
    """The facts of every rank in the table. Raises ``Foreign`` where it is no such table."""
    try:
        text = read_whole(path, _BYTES_MOST).decode("utf-8-sig")
        table = csv.DictReader(StringIO(text, newline=""))
        columns = table.fieldnames or ()
        missing = [name for name in _NEEDED if name not in columns]
        if missing:
            raise Foreign(
                str(path),
                f"has no column {missing[0]!r}; expected step_trace_time.csv of torch_npu",
            )
        rows = [row for row in table if row.get("Type", "rank") in ("rank", None)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Foreign(str(path), f"cannot be read as a table: {error}") from None
    by_rank: dict[str, list[Step]] = {}
    for number, row in enumerate(rows, 2):
        by_rank.setdefault(row.get("Index") or "", []).append(_step(path, number, row))
    if not by_rank:
        raise Foreign(str(path), "has no rows; expected one for each step")
    several = len(by_rank)
    return tuple(
        _facts(path, rank, tuple(steps), several) for rank, steps in sorted(by_rank.items())
    )


def _step(path: Path, number: int, row: Mapping[str, str | None]) -> Step:
    def ns(column: str) -> int:
        try:
            return nanoseconds((row.get(column) or "").strip())
        except ValueError as error:
            raise Foreign(str(path), f"line {number}: {column}: {error}") from None

    compute, exposed, free = ns(_COMPUTE), ns(_EXPOSED), ns(_FREE)
    bubble = ns(_BUBBLE) if row.get(_BUBBLE) else 0
    return Step(
        name=f"step {row.get('Step')}" if row.get("Step") else "all",
        start=0,
        end=compute + exposed + free,
        host_ns=None,
        compute_ns=compute,
        comm_ns=ns(_COMM),
        mem_ns=0,
        overlapped_ns=ns(_OVERLAPPED),
        exposed_ns=exposed,
        exposed_strict_ns=exposed,
        # Receiving counts as bubble there, whether it is exposed or not.
        exposed_judged_ns=max(0, exposed - bubble),
        bubble_ns=min(bubble, exposed),
        longest_blank_ns=None,
        mem_extra_ns=0,
        idle_ns=free,
        host_gap_ns=None,
        host_wait_ns=None,
        kernels=0,
        comm_kernels=0,
        forward_ns=None,
        gather_ns=None,
        gather_exposed_ns=None,
    )


def _facts(path: Path, rank: str, steps: tuple[Step, ...], ranks: int) -> RankFacts:
    return RankFacts(
        file=path.name,
        rank=int(rank) if rank.isdecimal() else rank_beside(path),
        device="npu",
        layout="table",
        host=host_of(path),
        world=ranks if ranks > 1 else hcclgroups.beside(path).world,
        backend="hccl",
        library="",
        framework="",
        steps=steps,
        moved=(),
        calls=(),
        lanes=(),
        lanes_of="",
        outside=0,
        unlinked=0,
        records=0,
        notes=("from a table of steps: single collectives and launches are not in it",),
    )

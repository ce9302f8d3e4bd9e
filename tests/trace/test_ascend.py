"""torch_npu: rows told by names, unions where there are any, planes never counted, tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commcheck.errors import UsageError
from commcheck.trace import steptable
from tests.trace.chrome import write
from tests.trace.expected import assert_identity, facts_of, made

TABLE = """\
Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,\
Communication(Not Overlapped and Exclude Receive),Preparing
0,7,700.500,200.250,100.000,300.250,99.250,1000.000,50.000,150.250,10.0
0,8,690.000,210.000,100.000,310.000,100.000,1000.000,0,210.0,10.0
"""


def without_overlap_rows(path: Path, *, last: bool = False) -> None:
    """Take the ready-made unions out; ``last``: put the names of rows behind all events."""
    events: list[dict[str, Any]] = json.loads(path.read_text())
    (overlap,) = (
        each["pid"]
        for each in events
        if each["ph"] == "M" and each["args"].get("name") == "Overlap Analysis"
    )
    kept = [each for each in events if each["pid"] != overlap]
    if last:
        kept.sort(key=lambda each: each["ph"] == "M")
    path.write_text(json.dumps(kept))


@pytest.mark.parametrize("last", [False, True])
def test_without_the_overlap_rows_the_unions_are_rebuilt(tmp_path: Path, last: bool) -> None:
    paths, _ = made(tmp_path, npu=True, memcpy=True, layers=4, kernels=3)
    with_rows = facts_of(paths[0])
    without_overlap_rows(paths[0], last=last)
    if last:
        # A bare list is known by its rows' names; with those last it is any Chrome trace.
        text = paths[0].read_text()
        first = '{"ph": "M", "name": "process_name", "pid": -1, "args": {"name": "CANN"}}'
        paths[0].write_text(f"[{first}, {text[1:]}")
    rebuilt = facts_of(paths[0])
    assert rebuilt.layout == with_rows.layout == "ascend"
    assert rebuilt.steps == with_rows.steps
    assert [move.count for move in rebuilt.moved] == [move.count for move in with_rows.moved]


def test_operators_are_counted_and_their_planes_are_not(tmp_path: Path) -> None:
    paths, expected = made(tmp_path, npu=True, layers=4, kernels=3)
    facts = facts_of(paths[0])
    (move,) = facts.moved
    assert move.kind == "allreduce"
    assert move.count == expected["ranks"]["0"]["collectives"]["allreduce"]["count"]
    assert move.busbw_gbytes is None


def test_table_of_steps(tmp_path: Path) -> None:
    (tmp_path / "profiler_info_3.json").write_text("{}")
    (facts,) = steptable.read(write(tmp_path / "step_trace_time.csv", TABLE))
    assert facts.rank == 3
    assert [step.name for step in facts.steps] == ["step 7", "step 8"]
    first = facts.steps[0]
    assert_identity(first)
    assert (first.time_ns, first.compute_ns, first.exposed_ns) == (1_000_000, 700_500, 200_250)
    assert (first.bubble_ns, first.exposed_judged_ns) == (50_000, 150_250)


def test_table_of_a_cluster(tmp_path: Path) -> None:
    lines = TABLE.splitlines()
    rows = [f"rank,{rank},{line}" for rank in (0, 1) for line in lines[1:]]
    text = "\n".join([f"Type,Index,{lines[0]}", *rows, f"stage,0,{lines[1]}", ""])
    ranks = steptable.read(write(tmp_path / "cluster_step_trace_time.csv", text))
    assert [(rank.rank, len(rank.steps), rank.world) for rank in ranks] == [(0, 2, 2), (1, 2, 2)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no column 'Computing'"),
        ("a,b\n1,2\n", "has no column 'Computing'"),
        (TABLE.splitlines()[0] + "\n", "has no rows"),
        (TABLE.replace("700.500", "n/a"), "line 2: Computing: 'n/a' is no time"),
    ],
)
def test_no_table(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        steptable.read(write(tmp_path / "step_trace_time.csv", text))

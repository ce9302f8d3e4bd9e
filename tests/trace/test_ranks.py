"""Several ranks: clocks, skew, stragglers, matching, the wire."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commcheck.trace.facts import Call, JobFacts
from commcheck.trace.limits import Limits
from commcheck.trace.ranks import job_of, match
from commcheck.trace.store import Transfer
from commcheck.trace.waiting import straggler
from tests.trace.expected import facts_of, made

SMALL = {"layers": 4, "kernels": 3, "bucket_mb": 12.5}


def job(tmp_path: Path, **options: Any) -> tuple[JobFacts, dict[str, Any]]:
    paths, expected = made(tmp_path, **{**SMALL, **options})
    return job_of([facts_of(path) for path in reversed(paths)]), expected


@pytest.mark.parametrize(
    "options",
    [
        {"ranks": 2},
        {"ranks": 4, "straggler": 2, "straggler_factor": 1.35},
        {"ranks": 3, "straggler": 0, "straggler_factor": 2.0, "clock": [0, -3_000_000, 7_000_123]},
        {"ranks": 2, "straggler": 1, "straggler_factor": 1.5, "coll_args": False},
        {"ranks": 2, "straggler": 1, "straggler_factor": 1.5, "npu": True, "clock": [0, 900_000]},
        {"ranks": 2, "mode": "zero3", "straggler": 1, "straggler_factor": 1.5},
    ],
)
def test_skew_and_clocks(tmp_path: Path, options: dict[str, Any]) -> None:
    facts, expected = job(tmp_path, **options)
    want, skew = expected["straggler"], facts.skew
    assert skew is not None
    assert [rank.rank for rank in facts.ranks] == list(range(len(facts.ranks)))
    assert skew.collectives == want["collectives"]
    assert skew.mean_ns == pytest.approx(want["mean_start_skew_ms"] * 1e6, abs=2)
    assert skew.most_ns == round(want["max_start_skew_ms"] * 1e6)
    assert skew.late_ns == pytest.approx([ms * 1e6 for ms in want["mean_lateness_ms"]], abs=2)
    assert skew.wait_ns == tuple(round(ms * 1e6) for ms in want["wait_ms"])
    assert skew.offset_ns == tuple(round(us * 1000) for us in want["clock_offset_us"])
    step_ns = facts.ranks[0].median_ns
    assert straggler(skew, step_ns, Limits()) == want["straggler_rank"]


def test_the_wire_does_not_wait(tmp_path: Path) -> None:
    facts, _ = job(tmp_path, ranks=2, straggler=1, straggler_factor=2.0, busbw=40.0, alpha_us=0.0)
    (wire,) = facts.wires
    assert wire.busbw_gbytes == pytest.approx(40.0, rel=1e-3)
    assert not wire.includes_waiting
    (move,) = facts.ranks[0].moved
    assert move.busbw_gbytes is not None
    assert move.busbw_gbytes < 20
    (alone,) = job_of(facts.ranks[:1]).wires
    assert alone.includes_waiting
    assert alone.busbw_gbytes == pytest.approx(move.busbw_gbytes)


def call(seq: int, *, kind: str = "allreduce", group: str = "[0, 1]", size: int = 2) -> Call:
    return Call(0, Transfer(kind, group, size, 4, ""), seq, "20", seq, seq + 1)


def test_matching_is_by_sequence_number_where_it_is_unique() -> None:
    notes: list[str] = []
    matched = match([[call(1), call(2), call(3)], [call(2), call(1), call(3)]], notes)
    assert [(a.seq, b.seq) for a, b in matched] == [(1, 1), (2, 2), (3, 3)]
    # Coalesced calls share a number: by ordinal then.
    twice = [[call(1), call(1)], [call(1), call(1)]]
    assert len(match(twice, notes)) == 2
    assert notes == []


def test_threads_of_gloo_are_no_streams() -> None:
    def on(thread: int, start: int) -> Call:
        return replace(call(-1), stream=f"thread {thread}", start=start, end=start + 1)

    ranks = [[on(0, 10), on(1, 20), on(0, 30)], [on(1, 11), on(0, 21), on(0, 31)]]
    by_thread = [sorted(mine, key=lambda each: each.stream) for mine in ranks]
    matched = match(by_thread, [])
    assert [(a.start, b.start) for a, b in matched] == [(10, 11), (20, 21), (30, 31)]


def test_what_differs_between_ranks_is_told_and_not_matched() -> None:
    notes: list[str] = []
    assert match([[call(1), call(2)], [call(1)]], notes) == []
    assert notes == ["allreduce of group [0, 1]: the ranks count 2, 1 calls; they are not matched"]


def test_groups_of_some_ranks_and_send_and_receive_are_left_out() -> None:
    notes: list[str] = []
    mine = [[call(1, group=f"[{rank}]", size=1), call(2, kind="send")] for rank in (0, 1)]
    other = [[call(1, group="[0, 2]", size=2)], [call(1, group="[1, 3]", size=2)]]
    assert match(mine, notes) == match(other, notes) == []
    assert notes == []


def test_the_world_is_at_least_what_is_seen(tmp_path: Path) -> None:
    facts, _ = job(tmp_path, ranks=2, world=8, dist_info="none")
    assert facts.world == 8
    bare = [replace(rank, world=None, moved=()) for rank in facts.ranks]
    assert job_of(bare).world == 2
    assert job_of(bare[:1]).world is None

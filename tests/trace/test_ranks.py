"""Several ranks: clocks, skew, stragglers, matching, the wire."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commcheck.trace import causes
from commcheck.trace.facts import Call, JobFacts
from commcheck.trace.ladder import judge
from commcheck.trace.limits import Limits
from commcheck.trace.matching import match
from commcheck.trace.ranks import APART_NS, job_of
from commcheck.trace.rungs import Known
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
    assert [(each[0].seq, each[1].seq) for each in matched] == [(1, 1), (2, 2), (3, 3)]
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
    assert [(each[0].start, each[1].start) for each in matched] == [(10, 11), (20, 21), (30, 31)]


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


def test_a_named_group_that_all_speak_in_is_matched() -> None:
    """As torch_npu names them: of one host that is all tensor-parallel."""
    named = Transfer("allreduce", "844", 0, None, "tp")
    calls = [[Call(0, named, -1, "Group 0", at, 50)] for at in (10, 20)]
    assert len(match(calls, [])) == 1
    untold = [[replace(c, transfer=named._replace(group="")) for c in mine] for mine in calls]
    assert match(untold, []) == []


def test_the_world_is_at_least_what_is_seen(tmp_path: Path) -> None:
    facts, _ = job(tmp_path, ranks=2, world=8, dist_info="none")
    assert facts.world == 8
    bare = [replace(rank, world=None, moved=()) for rank in facts.ranks]
    assert job_of(bare).world == 2
    assert job_of(bare[:1]).world is None


def grid(late: int, *, seqs: bool = True) -> list[list[Call]]:
    """Ranks 0 to 3 in tensor-parallel pairs 0-1 and 2-3, data-parallel pairs 0-2 and 1-3.

    Ten layers of 100 ns; then the gradients. ``late``: a rank that computes 30 ns longer a layer.
    """
    found = []
    for rank in range(4):
        pair = rank // 2
        layer = 130 if late // 2 == pair else 100
        mine = []
        for number in range(10):
            end = (number + 1) * layer
            start = end - (40 if layer > 100 and rank != late else 10)
            tp = Transfer("allreduce", f"[{2 * pair}, {2 * pair + 1}]", 2, 4, "tp")
            mine.append(Call(0, tp, number if seqs else -1, "20", start, end))
        dp = Transfer("allreduce", f"[{rank % 2}, {rank % 2 + 2}]", 2, 4, "dp")
        mine.append(Call(0, dp, 1 if seqs else -1, "24", layer * 10, 1320))
        found.append(mine)
    return found


@pytest.mark.parametrize("seqs", [True, False])
@pytest.mark.parametrize("late", range(4))
def test_who_is_late_is_told_by_groups_of_some_ranks(tmp_path: Path, late: int, seqs: bool) -> None:
    """The other one of its pair is late to the gradients too, since it waits for it."""
    facts, _ = job(tmp_path, ranks=4, clock=[0, 5_000, -7_000, 9_000])
    clocks = (0, 5_000, -7_000, 9_000)
    ranks = [
        replace(
            rank,
            pipes=frozenset(),
            calls=tuple(replace(c, start=c.start + by, end=c.end + by) for c in calls),
        )
        for rank, calls, by in zip(facts.ranks, grid(late, seqs=seqs), clocks, strict=True)
    ]
    found = job_of(ranks)
    skew = found.skew
    assert skew is not None
    assert skew.collectives == 22
    assert [one - skew.offset_ns[0] for one in skew.offset_ns] == list(clocks)
    assert straggler(skew, 1320, replace(Limits(), late_us=0.0)) == late
    assert {wire.group for wire in found.wires} == {"[0, 1]", "[2, 3]", "[0, 2]", "[1, 3]"}


def test_what_is_late_at_once_is_late_once(tmp_path: Path) -> None:
    """gloo runs two at a time: both wait for the same."""
    facts, _ = job(tmp_path, ranks=2)
    what = Transfer("allreduce", "", 2, 4, "")
    calls = [[Call(0, what, -1, f"thread {n}", start, 100) for n in (1, 2)] for start in (0, 60)]
    ranks = [replace(r, calls=tuple(mine)) for r, mine in zip(facts.ranks, calls, strict=True)]
    skew = job_of(ranks).skew
    assert skew is not None
    assert (skew.late_step_ns, skew.step_ns) == ((0, 60), 60)


@pytest.mark.parametrize("pipe", ["[0, 1, 2, 3]", "[0, 2]", "868", ""])
def test_stages_of_a_pipeline_are_not_late(tmp_path: Path, pipe: str) -> None:
    """The first one ends last: what all do together afterwards waits for it by nature."""
    facts, _ = job(tmp_path, ranks=4, straggler=0, straggler_factor=2.0)
    assert facts.skew is not None
    piped = job_of([replace(rank, pipes=frozenset({pipe})) for rank in facts.ranks])
    assert piped.skew is None
    assert any("no collective within a pipeline's stages" in note for note in piped.notes)
    (verdict, *_) = judge(piped, Limits(), Known())
    assert verdict.cause is not causes.STRAGGLER
    assert "in what pipeline stages do together they also wait" in verdict.reason


def test_traces_of_several_runs_are_not_compared(tmp_path: Path) -> None:
    """In an old folder lie all ranks, and of the new run only one was profiled."""
    facts, _ = job(tmp_path, ranks=3, straggler=1, straggler_factor=2.0)
    new = replace(facts.ranks[0], began_ns=facts.ranks[0].began_ns + APART_NS + 30_000_000_000)
    mixed = job_of([new, *facts.ranks[1:]])
    assert mixed.skew is None
    assert any("the traces begin 10 min apart" in note for note in mixed.notes)
    assert all(wire.includes_waiting for wire in mixed.wires)
    (verdict, *_) = judge(mixed, Limits(), Known())
    assert "whether the ranks wait for a late one is not told" in verdict.reason


def test_within_a_stage_a_rank_can_be_late() -> None:
    calls = grid(3)
    assert len(match(calls, [], {"[0, 2]", "[1, 3]"})) == 20
    assert match(calls, [], {"[0, 1, 2, 3]"}) == []

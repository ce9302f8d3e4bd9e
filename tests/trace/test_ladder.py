"""The ladder: each cause found where it is, and nothing where nothing is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commcheck.model import Cause, Kind, Status
from commcheck.trace import causes
from commcheck.trace.facts import JobFacts, Moved, RankFacts, Skew, Step
from commcheck.trace.ladder import judge, silent_ranks
from commcheck.trace.limits import Limits
from commcheck.trace.ranks import job_of
from commcheck.trace.rungs import Known, pct
from commcheck.trace.waiting import straggler
from tests.trace.expected import facts_of, made
from tests.trace.make_trace import DEMO

FOUND = {
    "good_overlap": (Status.PASS, None, ""),
    "serial": (Status.WARN, causes.NOT_OVERLAPPED, "only 0 % of it overlaps"),
    "small_buckets": (Status.FAIL, causes.SMALL_COLLECTIVES, "60 collectives a step"),
    "zero3_gather_bound": (Status.FAIL, causes.GATHER_BOUND, "64 % of the forward pass"),
    "straggler": (Status.FAIL, causes.STRAGGLER, "rank 2 starts its collectives 3.06 ms late"),
    "launch_bound": (Status.FAIL, causes.LAUNCH_BOUND, "for 41 % of the step"),
}


@pytest.mark.parametrize("options", DEMO, ids=lambda each: each["name"])
def test_each_demonstration_has_its_one_cause(tmp_path: Path, options: dict[str, Any]) -> None:
    paths, _ = made(tmp_path, **{key: value for key, value in options.items() if key != "verdict"})
    job = job_of([facts_of(path) for path in paths])
    (verdict,) = judge(job, Limits(), Known())
    status, cause, words = FOUND[options["name"]]
    assert (verdict.status, verdict.cause) == (status, cause)
    assert words in verdict.reason
    assert bool(verdict.remedies) is (cause is not None)


def step(**share: float) -> Step:
    """A step of 100 ms; arguments are percents of it, by the beginning of the field's name."""
    ns = {name: int(value * 1_000_000) for name, value in share.items()}
    comm, exposed = ns.get("comm", 0), ns.get("exposed", 0)
    bubble = ns.get("bubble", 0)
    compute = ns.get("compute", 100_000_000 - exposed)
    return Step(
        name="ProfilerStep#1",
        start=0,
        end=100_000_000,
        host_ns=100_000_000,
        compute_ns=compute,
        comm_ns=comm,
        mem_ns=0,
        overlapped_ns=comm - exposed,
        exposed_ns=exposed,
        exposed_strict_ns=exposed,
        exposed_judged_ns=exposed - bubble,
        bubble_ns=bubble,
        longest_blank_ns=exposed,
        mem_extra_ns=0,
        idle_ns=100_000_000 - compute - exposed,
        host_wait_ns=ns.get("host", 0),
        kernels=10,
        comm_kernels=1 if comm else 0,
        forward_ns=None,
        gather_ns=None,
        gather_exposed_ns=None,
    )


def job(
    tmp_path: Path, *, about: str = "default_pg", framework: str = "", **share: float
) -> JobFacts:
    paths, _ = made(tmp_path, ranks=1, world=8, layers=2, kernels=2, steps=2)
    facts = facts_of(paths[0])
    moved = tuple(replace(move, about=about) for move in facts.moved)
    return job_of([replace(facts, steps=(step(**share),), moved=moved, framework=framework)])


CASES: dict[str, tuple[dict[str, Any], Known, list[tuple[Status, Cause | None]]]] = {
    "healthy": ({"comm": 40, "exposed": 10}, Known(), [(Status.PASS, None)]),
    "at the limit": ({"comm": 40, "exposed": 15}, Known(), [(Status.PASS, None)]),
    "warns": ({"comm": 40, "exposed": 16}, Known(), [(Status.WARN, causes.EXPOSED)]),
    "fails": ({"comm": 80, "exposed": 31}, Known(), [(Status.FAIL, causes.EXPOSED)]),
    "warns at the limit": ({"comm": 80, "exposed": 30}, Known(), [(Status.WARN, causes.EXPOSED)]),
    "serial": ({"comm": 40, "exposed": 35}, Known(), [(Status.FAIL, causes.NOT_OVERLAPPED)]),
    "serial at the limit": (
        {"comm": 30, "exposed": 30},
        Known(),
        [(Status.WARN, causes.NOT_OVERLAPPED)],
    ),
    "launches first": (
        {"comm": 40, "exposed": 35, "host": 40},
        Known(),
        [(Status.FAIL, causes.LAUNCH_BOUND)],
    ),
    "launches as well": (
        {"comm": 40, "exposed": 35, "host": 20},
        Known(),
        [(Status.WARN, causes.LAUNCH_BOUND), (Status.FAIL, causes.NOT_OVERLAPPED)],
    ),
    "a bubble is no bandwidth": (
        {"comm": 60, "exposed": 50, "bubble": 40},
        Known(),
        [(Status.WARN, causes.PIPELINE_BUBBLE)],
    ),
    "tensor parallel": (
        {"comm": 40, "exposed": 35, "about": "TENSOR_MODEL_PARALLEL_GROUP"},
        Known(),
        [(Status.WARN, causes.TENSOR_PARALLEL)],
    ),
    "data parallel is not tensor parallel": (
        {"comm": 40, "exposed": 35, "about": "DATA_PARALLEL_GROUP_WITH_CP"},
        Known(),
        [(Status.FAIL, causes.NOT_OVERLAPPED)],
    ),
    "a slow wire": (
        {"comm": 80, "exposed": 20},
        Known(busbw_gbytes=380.0),
        [(Status.WARN, causes.SLOW_WIRE)],
    ),
    "a wire as measured": (
        {"comm": 80, "exposed": 20},
        Known(busbw_gbytes=42.0),
        [(Status.WARN, causes.EXPOSED)],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_rungs(tmp_path: Path, case: str) -> None:
    share, known, want = CASES[case]
    verdicts = judge(job(tmp_path, **share), Limits(), known)
    assert [(verdict.status, verdict.cause) for verdict in verdicts] == want


def test_limits_are_options(tmp_path: Path) -> None:
    facts = job(tmp_path, comm=40, exposed=10)
    (verdict,) = judge(facts, Limits(exposed_warn=0.05), Known())
    assert verdict.cause is causes.EXPOSED


def test_alpha_that_is_given_makes_it_certain(tmp_path: Path) -> None:
    paths, _ = made(
        tmp_path, bucket_mb=0.4, layer_mb=0.4, layers=60, kernels=2, kernel_us=20, alpha_us=150
    )
    facts = job_of([facts_of(path) for path in paths])
    (guessed,) = judge(facts, Limits(), Known())
    (known,) = judge(facts, Limits(), Known(alpha_us=150.0))
    (wide,) = judge(facts, Limits(), Known(alpha_us=5.0))
    assert guessed.measured["sure"] == "likely"
    assert "against it" in guessed.reason
    assert (known.cause, known.measured["sure"]) == (causes.SMALL_COLLECTIVES, "certain")
    assert wide.cause is causes.NOT_OVERLAPPED


def test_remedies_are_those_of_the_framework(tmp_path: Path) -> None:
    (verdict,) = judge(job(tmp_path, comm=40, exposed=35, framework="DDP"), Limits(), Known())
    assert verdict.remedies == (causes.DDP_BUCKETS, causes.DDP_VIEW)
    (verdict,) = judge(job(tmp_path, comm=40, exposed=35), Limits(), Known())
    assert verdict.remedies == causes.NOT_OVERLAPPED.remedies
    alone = job(tmp_path, comm=40, exposed=35).ranks[0]
    (verdict,) = judge(job_of([replace(alone, layout="ascend")]), Limits(), Known())
    assert set(causes.NOT_OVERLAPPED.remedies) - set(verdict.remedies) == {causes.CONNECTIONS}
    assert all(
        causes.remedies_for(cause, each, is_npu=is_npu)
        for cause in causes.CAUSES
        for is_npu in (False, True)
        for each in ("FSDP", "FSDP2", "DDP", "DeepSpeed", "ZeRO-3", "Megatron", "")
    )
    assert (
        causes.remedies_for(causes.GATHER_BOUND, "DeepSpeed", is_npu=False)[0]
        is causes.ZERO3_PREFETCH
    )


def quiet(rank: RankFacts, world: int | None) -> RankFacts:
    return replace(rank, steps=(step(compute=90),), moved=(), calls=(), world=world)


@pytest.mark.parametrize(
    ("world", "status", "kind", "words"),
    [
        (8, Status.ERROR, Kind.CHECK, "though the host calls 2 collectives: it proves nothing"),
        (1, Status.SKIP, Kind.NOT_APPLICABLE, "one rank"),
        (None, Status.SKIP, Kind.UNDECIDABLE, "nothing tells how many ranks"),
    ],
)
def test_no_communication_is_never_a_pass(
    tmp_path: Path, world: int | None, status: Status, kind: Kind, words: str
) -> None:
    silent = job_of([quiet(job(tmp_path, comm=1).ranks[0], world)])
    (verdict,) = judge(silent, Limits(), Known())
    assert (verdict.status, verdict.kind) == (status, kind)
    assert words in verdict.reason


def test_one_silent_rank_among_talking_ones_is_named(tmp_path: Path) -> None:
    talking = job(tmp_path, comm=40, exposed=5).ranks[0]
    mixed = job_of([talking, replace(quiet(talking, 8), rank=1)])
    assert [rank.name for rank in silent_ranks(mixed)] == ["rank 1"]
    assert silent_ranks(job_of([talking])) == ()


def test_of_some_ranks_the_latest_is_only_likely(tmp_path: Path) -> None:
    options: dict[str, Any] = {"straggler": 1, "straggler_factor": 1.5, "layers": 4, "kernels": 3}
    paths, _ = made(tmp_path, ranks=2, world=8, **options)
    (verdict,) = judge(job_of([facts_of(path) for path in paths]), Limits(), Known())
    assert (verdict.cause, verdict.measured["sure"]) == (causes.STRAGGLER, "likely")
    assert "of 8 ranks 2 are seen" in verdict.reason


def test_ranks_that_wait_by_turns_have_no_straggler() -> None:
    recorded = Path(__file__).parents[1] / "recorded" / "traces"
    gloo = job_of([facts_of(recorded / f"ddp_gloo_cap1_rank{rank}.json.gz") for rank in (0, 1)])
    (verdict,) = judge(gloo, Limits(), Known())
    assert verdict.cause is causes.EXPOSED
    assert "wait for each other by turns" in verdict.reason
    assert verdict.measured["sure"] == "likely"


@pytest.mark.parametrize(
    ("late_us", "late_step_us", "comm_us", "latest"),
    [
        ((0, 51), (0, 3_001), (9, 8), 1),
        ((51, 0), (3_001, 0), (8, 9), 0),
        ((0, 50), (0, 9_000), (9, 8), None),  # jitter of a launch
        ((0, 90), (0, 3_000), (9, 8), None),  # little of a step
        ((0, 90), (0, 9_000), (8, 9), None),  # who waits itself is not waited for
    ],
)
def test_a_straggler_is_late_by_each_limit(
    late_us: tuple[int, int],
    late_step_us: tuple[int, int],
    comm_us: tuple[int, int],
    latest: int | None,
) -> None:
    def ns(of: tuple[int, int]) -> tuple[int, ...]:
        return tuple(1000 * each for each in of)

    skew = Skew(
        ranks=("rank 0", "rank 1"),
        collectives=10,
        mean_ns=0,
        most_ns=0,
        step_ns=0,
        late_ns=ns(late_us),
        late_step_ns=ns(late_step_us),
        wait_ns=(0, 0),
        comm_ns=ns(comm_us),
        offset_ns=(0, 0),
    )
    assert straggler(skew, 100_000_000, Limits()) == latest


@pytest.mark.parametrize(("share", "told"), [(0.0, "0 %"), (0.0994, "9.9 %"), (0.1, "10 %")])
def test_small_shares_keep_a_digit(share: float, told: str) -> None:
    assert pct(share) == told


def moved_as(tmp_path: Path, *parts: Moved, **share: Any) -> JobFacts:
    facts = job(tmp_path, **share)
    return job_of([replace(facts.ranks[0], moved=parts)])


def part(count: int, time_us: int, *, about: str = "default_pg", tiny: int = 0) -> Moved:
    """So many collectives in so much time; ``tiny`` of them below 64 kB, their part of it."""
    ns = 1000 * time_us
    return Moved(
        kind="allreduce",
        group="0",
        group_size=8,
        about=about,
        count=count,
        time_ns=ns,
        sized=0,
        sized_ns=0,
        size_bytes=0,
        sizes={},
        small_ns=0,
        tiny_ns=ns * tiny // count,
        tiny_count=tiny,
    )


@pytest.mark.parametrize(
    ("tensor_us", "cause"), [(50, causes.NOT_OVERLAPPED), (51, causes.TENSOR_PARALLEL)]
)
def test_tensor_parallel_is_more_than_half(tmp_path: Path, tensor_us: int, cause: Cause) -> None:
    parts = (part(1, tensor_us, about="TENSOR_MODEL_PARALLEL_GROUP"), part(1, 100 - tensor_us))
    (verdict,) = judge(moved_as(tmp_path, *parts, comm=40, exposed=35), Limits(), Known())
    assert verdict.cause is cause
    told = "51 % of the communication time in tensor-parallel groups" in verdict.reason
    assert told is (cause is causes.TENSOR_PARALLEL)


@pytest.mark.parametrize(
    ("count", "each_us", "cause"),
    [
        (200, 101, causes.SMALL_COLLECTIVES),
        (200, 99, causes.NOT_OVERLAPPED),
        (15, 2_600, causes.NOT_OVERLAPPED),  # few
    ],
)
def test_the_latency_of_a_small_message_is_that_of_the_smallest(
    tmp_path: Path, count: int, each_us: int, cause: Cause
) -> None:
    """A step of 100 ms with 40 ms of communication, of which the latency is half or not."""
    tiny = part(count, count * each_us, tiny=count)
    (verdict,) = judge(moved_as(tmp_path, tiny, comm=40, exposed=35), Limits(), Known())
    assert verdict.cause is cause
    if cause is causes.SMALL_COLLECTIVES:
        told = "200 collectives a step, 200 x 101 us (mean of those below 64 kB) is 50 %"
        assert told in verdict.reason


def test_with_little_communication_a_missing_overlap_is_only_likely(tmp_path: Path) -> None:
    """Certain where all ranks are seen, and none is late."""
    paths, _ = made(tmp_path, layers=2, kernels=2, steps=2)
    both = [facts_of(path) for path in paths]

    def sure(*ranks: RankFacts, **share: float) -> object:
        steps = (step(**share),)
        facts = job_of([replace(rank, steps=steps) for rank in ranks])
        return judge(facts, Limits(), Known())[0].measured["sure"]

    assert sure(*both, comm=29, exposed=29) == "likely"
    assert sure(*both, comm=30, exposed=29) == "certain"
    assert sure(both[0], comm=30, exposed=29) == "likely"
    assert sure(*(replace(rank, calls=()) for rank in both), comm=30, exposed=29) == "likely"


def table(*ranks: dict[str, float]) -> JobFacts:
    """The ranks of a table of steps."""
    return job_of(
        [
            rank_of_table(number, replace(step(**share), host_wait_ns=None, longest_blank_ns=None))
            for number, share in enumerate(ranks)
        ]
    )


def rank_of_table(number: int, row: Step) -> RankFacts:
    return RankFacts(
        file="cluster_step_trace_time.csv",
        rank=number,
        device="npu",
        layout="table",
        host="",
        world=None,
        backend="hccl",
        library="",
        framework="",
        steps=(row,),
        moved=(),
        calls=(),
        lanes=(),
        lanes_of="",
        outside=0,
        unlinked=0,
        records=0,
    )


FAST: dict[str, float] = {"compute": 37, "comm": 98, "exposed": 62}
EVEN: dict[str, float] = {"compute": 40, "comm": 55, "exposed": 50}
TABLES: dict[str, tuple[list[dict[str, float]], list[tuple[Status, Cause | None, str]]]] = {
    "its host is slow": (
        [FAST, {"compute": 37, "comm": 19, "exposed": 17}],
        [
            (
                Status.FAIL,
                causes.STRAGGLER,
                "rank 1 communicates for only 19 % of the step, rank 0 for 98 % (limit 5.0 % "
                "apart): it is idle for 46 %, rank 0 for 1.0 %; likely",
            )
        ],
    ),
    "its device is slow": (
        [FAST, {"compute": 80, "comm": 19, "exposed": 17}, FAST],
        [(Status.FAIL, causes.STRAGGLER, "it computes for 80 %, rank 0 for 37 %")],
    ),
    "two of four": (
        [FAST, FAST, {"compute": 80, "comm": 20, "exposed": 17}, {"compute": 80, "comm": 19}],
        [(Status.FAIL, causes.STRAGGLER, "rank 3 and 1 more communicates for only 19 %")],
    ),
    "all alike": (
        [EVEN, EVEN],
        [(Status.FAIL, causes.NOT_OVERLAPPED, "likely; against it: whether the ranks wait")],
    ),
    "a little apart": (
        [EVEN, {"compute": 45, "comm": 50, "exposed": 45}],
        [(Status.FAIL, causes.NOT_OVERLAPPED, "likely; against it: whether the ranks wait")],
    ),
    "most are late": (
        [EVEN, {"compute": 80, "comm": 19}, {"compute": 80, "comm": 19}],
        [(Status.FAIL, causes.NOT_OVERLAPPED, "rank 0: exposed communication is 50 %")],
    ),
    "stages of a pipeline": (
        [EVEN, {"compute": 80, "comm": 19, "exposed": 15, "bubble": 10}],
        [(Status.FAIL, causes.NOT_OVERLAPPED, "pipeline stages differ by themselves")],
    ),
    "one rank is not enough": (
        [{"compute": 37, "comm": 19, "exposed": 17}],
        [
            (Status.WARN, causes.IDLE, "rank 0 neither computes nor communicates for 46 %"),
            (Status.WARN, causes.NOT_OVERLAPPED, "of one rank alone nothing tells waiting"),
        ],
    ),
    "idle at the limit": (
        [{"compute": 65, "comm": 9, "exposed": 5}],
        [(Status.PASS, None, "exposed 5.0 %")],
    ),
    "idle without communication": (
        [{"compute": 60}],
        [(Status.WARN, causes.IDLE, "40 % of the step"), (Status.SKIP, None, "no communication")],
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_in_a_table_of_steps_who_waits_least_is_waited_for(case: str) -> None:
    ranks, want = TABLES[case]
    verdicts = judge(table(*ranks), Limits(), Known())
    assert [(each.status, each.cause) for each in verdicts] == [each[:2] for each in want]
    for verdict, (_, _, words) in zip(verdicts, want, strict=True):
        assert words in verdict.reason
        assert "certain" not in verdict.reason
        assert "blank" not in verdict.reason
        told = " ".join(remedy.command for remedy in verdict.remedies)
        assert [word for word in ("nvidia", "CUDA", "all_reduce_perf") if word in told] == []


def test_what_makes_ranks_uneven_is_a_limit() -> None:
    apart = table(EVEN, {"compute": 44, "comm": 51, "exposed": 46})
    assert judge(apart, Limits(), Known())[0].cause is causes.NOT_OVERLAPPED
    assert judge(apart, Limits(uneven=0.03), Known())[0].cause is causes.STRAGGLER


def test_a_slow_wire_is_told_with_its_size(tmp_path: Path) -> None:
    facts = job(tmp_path, comm=80, exposed=20)
    (wire,) = facts.wires
    (verdict,) = judge(facts, Limits(), Known(busbw_gbytes=380.0))
    mean_mb = wire.size_bytes / wire.count / 1e6
    assert f"{wire.kind} of {mean_mb:.0f} MB among {wire.group_size} ranks" in verdict.reason

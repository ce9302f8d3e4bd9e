"""The ladder: each cause found where it is, and nothing where nothing is."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from commcheck.errors import UsageError
from commcheck.model import Cause, Kind, Status
from commcheck.trace import causes, remedies
from commcheck.trace.facts import JobFacts, Moved, Part, RankFacts, Skew, Step
from commcheck.trace.ladder import judge, silent_ranks
from commcheck.trace.limits import DECIDED_BY, Limits
from commcheck.trace.ranks import job_of
from commcheck.trace.roles import Role
from commcheck.trace.rungs import Known, pct
from commcheck.trace.waiting import straggler
from commcheck.trace.wire import busbw_told, unlike
from tests.trace.expected import facts_of, made
from tests.trace.make_trace import DEMO

FOUND = {
    "good_overlap": (Status.PASS, None, ""),
    "serial": (Status.WARN, causes.NOT_OVERLAPPED, "only 0 % of it overlaps"),
    "small_buckets": (Status.FAIL, causes.SMALL_COLLECTIVES, "60 collectives a step"),
    "zero3_gather_bound": (Status.FAIL, causes.GATHER_BOUND, "64 % of the forward pass"),
    "straggler": (Status.FAIL, causes.STRAGGLER, "rank 2 starts its collectives 3.06 ms late"),
    "launch_bound": (Status.FAIL, causes.LAUNCH_BOUND, "for 46 % of the step"),
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


def step(*, roles: dict[Role, tuple[float, float]] | None = None, **share: float) -> Step:
    """A step of 100 ms; arguments are percents of it, by the beginning of the field's name.

    ``roles``: communication and what of it is exposed, by what the groups are for.
    """
    ns = {name: int(value * 1_000_000) for name, value in share.items()}
    parts = {
        role: Part(int(comm * 1_000_000), int(exposed * 1_000_000))
        for role, (comm, exposed) in (roles or {}).items()
    }
    comm, exposed = ns.get("comm", 0), ns.get("exposed", 0)
    bubble, tensor, untold = (ns.get(name, 0) for name in ("bubble", "tensor", "untold"))
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
        exposed_judged_ns=exposed - bubble - tensor - untold,
        bubble_ns=bubble,
        untold_ns=untold,
        exposed_tensor_ns=tensor,
        longest_blank_ns=exposed,
        mem_extra_ns=0,
        idle_ns=100_000_000 - compute - exposed,
        host_gap_ns=ns.get("host", 0),
        host_wait_ns=ns.get("host", 0),
        pause_ns=ns.get("pause", 0),
        longest_pause_ns=ns.get("pause", 0),
        input_ns=ns.get("input", 0),
        exposed_unfed_ns=ns.get("unfed", 0),
        kernels=10,
        comm_kernels=1 if comm else 0,
        forward_ns=None,
        gather_ns=None,
        gather_exposed_ns=None,
        roles=parts,
    )


def job(
    tmp_path: Path, *, about: str = "default_pg", framework: str = "", **share: Any
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
        {"comm": 40, "exposed": 35, "host": 40, "unfed": 20},
        Known(),
        [(Status.FAIL, causes.LAUNCH_BOUND)],
    ),
    "launches do not explain what is exposed elsewhere": (
        {"comm": 40, "exposed": 35, "host": 40, "unfed": 19},
        Known(),
        [(Status.FAIL, causes.LAUNCH_BOUND), (Status.FAIL, causes.NOT_OVERLAPPED)],
    ),
    "launches as well": (
        {"comm": 40, "exposed": 35, "host": 20},
        Known(),
        [(Status.WARN, causes.LAUNCH_BOUND), (Status.FAIL, causes.NOT_OVERLAPPED)],
    ),
    "input": ({"comm": 14, "input": 39}, Known(), [(Status.FAIL, causes.INPUT_BOUND)]),
    "a little input": ({"comm": 14, "input": 11}, Known(), [(Status.WARN, causes.INPUT_BOUND)]),
    "input in time": ({"comm": 14, "input": 10}, Known(), [(Status.PASS, None)]),
    "long gaps": (
        {"comm": 14, "host": 40, "pause": 39},
        Known(),
        [(Status.FAIL, causes.HOST_PAUSE)],
    ),
    "long gaps and many short ones": (
        {"comm": 14, "host": 25, "pause": 12},
        Known(),
        [(Status.WARN, causes.HOST_PAUSE), (Status.WARN, causes.LAUNCH_BOUND)],
    ),
    "a little of all three": (
        {"comm": 14, "host": 10, "pause": 4, "input": 5},
        Known(),
        [(Status.WARN, causes.LAUNCH_BOUND)],
    ),
    "input does not explain what is exposed": (
        {"comm": 35, "exposed": 35, "input": 20},
        Known(),
        [(Status.WARN, causes.INPUT_BOUND), (Status.FAIL, causes.NOT_OVERLAPPED)],
    ),
    "input does not hide a slow wire": (
        {"comm": 80, "exposed": 5, "input": 20},
        Known({"allreduce": 380.0}),
        [(Status.WARN, causes.INPUT_BOUND), (Status.WARN, causes.SLOW_WIRE)],
    ),
    "a bubble is no bandwidth": (
        {"comm": 60, "exposed": 50, "bubble": 40},
        Known(),
        [(Status.WARN, causes.PIPELINE_BUBBLE)],
    ),
    "sends and receives of nobody knows what": (
        {"comm": 60, "exposed": 50, "untold": 40},
        Known(),
        [(Status.SKIP, None)],
    ),
    "some of them, beside what is exposed": (
        {"comm": 60, "exposed": 52, "untold": 16},
        Known(),
        [(Status.FAIL, causes.NOT_OVERLAPPED), (Status.SKIP, None)],
    ),
    "few of them": ({"comm": 60, "exposed": 15, "untold": 15}, Known(), [(Status.PASS, None)]),
    "tensor parallel": (
        {"comm": 40, "exposed": 35, "tensor": 35, "roles": {Role.TENSOR: (40, 35)}},
        Known(),
        [(Status.WARN, causes.TENSOR_PARALLEL)],
    ),
    "gradients beside tensor parallel": (
        {
            "comm": 70,
            "exposed": 55,
            "tensor": 20,
            "roles": {Role.TENSOR: (30, 20), Role.OTHER: (40, 35)},
        },
        Known(),
        [(Status.WARN, causes.TENSOR_PARALLEL), (Status.FAIL, causes.NOT_OVERLAPPED)],
    ),
    "experts": (
        {"comm": 42, "exposed": 42, "roles": {Role.EXPERT: (42, 42)}},
        Known(),
        [(Status.FAIL, causes.EXPERT_PARALLEL)],
    ),
    "a little of experts": (
        {"comm": 20, "exposed": 20, "roles": {Role.EXPERT: (20, 20)}},
        Known(),
        [(Status.WARN, causes.EXPERT_PARALLEL)],
    ),
    "a ring": (
        {"comm": 95, "exposed": 42, "roles": {Role.CONTEXT: (95, 42)}},
        Known(),
        [(Status.FAIL, causes.CONTEXT_PARALLEL)],
    ),
    "experts and gradients, each too much": (
        {"comm": 60, "exposed": 40, "roles": {Role.EXPERT: (30, 20), Role.OTHER: (30, 20)}},
        Known(),
        [(Status.FAIL, causes.EXPERT_PARALLEL), (Status.FAIL, causes.NOT_OVERLAPPED)],
    ),
    "experts and gradients, only together too much": (
        {"comm": 24, "exposed": 24, "roles": {Role.EXPERT: (12, 12), Role.OTHER: (12, 12)}},
        Known(),
        [(Status.WARN, causes.NOT_OVERLAPPED)],
    ),
    "gradients that hidden sends of stages make look overlapped": (
        {"comm": 92, "exposed": 32, "roles": {Role.PIPELINE: (60, 0), Role.OTHER: (32, 32)}},
        Known(),
        [(Status.FAIL, causes.NOT_OVERLAPPED)],
    ),
    "a slow wire": (
        {"comm": 80, "exposed": 20},
        Known({"allreduce": 380.0}),
        [(Status.WARN, causes.SLOW_WIRE)],
    ),
    "another collective than measured": (
        {"comm": 80, "exposed": 20},
        Known({"alltoall": 380.0}),
        [(Status.WARN, causes.EXPOSED)],
    ),
    "a wire as measured": (
        {"comm": 80, "exposed": 20},
        Known({"allreduce": 42.0}),
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
    assert verdict.remedies == (remedies.DDP_BUCKETS, remedies.DDP_VIEW)
    assert "static_graph" not in remedies.DDP_VIEW.command  # crashes with gradient accumulation
    assert "grad_norm" in remedies.DEEPSPEED_OVERLAP.precondition.en
    (verdict,) = judge(job(tmp_path, comm=40, exposed=35), Limits(), Known())
    assert verdict.remedies == causes.NOT_OVERLAPPED.remedies
    alone = job(tmp_path, comm=40, exposed=35).ranks[0]
    (verdict,) = judge(job_of([replace(alone, layout="ascend")]), Limits(), Known())
    assert set(causes.NOT_OVERLAPPED.remedies) - set(verdict.remedies) == {remedies.CONNECTIONS}
    assert all(
        remedies.remedies_for(cause, each, accelerator)
        for cause in causes.CAUSES
        for accelerator in ("gpu", "npu", "")
        for each in ("FSDP", "FSDP2", "DDP", "DeepSpeed", "ZeRO-3", "Megatron", "")
    )
    assert (
        remedies.remedies_for(causes.GATHER_BOUND, "DeepSpeed", "gpu")[0] is remedies.ZERO3_PREFETCH
    )


@pytest.mark.parametrize(
    ("layout", "command"),
    [("kineto", "nvidia-smi"), ("ascend", "npu-smi"), ("table", "npu-smi"), ("cpu", "top")],
)
def test_commands_are_those_of_the_device(tmp_path: Path, layout: str, command: str) -> None:
    paths, _ = made(tmp_path, ranks=2, straggler=1, straggler_factor=3.0, layers=4, kernels=3)
    late = job_of([replace(facts_of(path), layout=layout) for path in paths])
    (verdict,) = judge(late, Limits(), Known())
    assert verdict.cause is causes.STRAGGLER
    assert verdict.remedies[0].command.startswith(command)
    for cause in causes.CAUSES:
        told = remedies.remedies_for(cause, "", late.ranks[0].accelerator)
        assert {each.accelerator for each in told} <= {"", late.ranks[0].accelerator}


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


def test_what_others_expose_while_they_wait_is_not_against_a_slow_host(tmp_path: Path) -> None:
    """Only one rank is launched slowly, and the others wait for it in their collectives."""
    options: dict[str, Any] = {"straggler": 1, "straggler_factor": 2.0, "layers": 4, "kernels": 3}
    paths, _ = made(tmp_path, ranks=3, **options)
    facts = [facts_of(path) for path in paths]
    slow = replace(
        facts[1],
        host="node-1",
        steps=tuple(replace(s, host_wait_ns=s.time_ns // 5) for s in facts[1].steps),
    )
    late, launches = judge(job_of([facts[0], slow, facts[2]]), Limits(), Known())
    assert (late.cause, launches.cause) == (causes.STRAGGLER, causes.LAUNCH_BOUND)
    assert late.hosts == launches.hosts == ("rank 1", "node-1")
    assert "against it" not in launches.reason
    assert "; the other ranks only for " in launches.reason


def test_a_pause_may_be_a_collective_of_the_host(tmp_path: Path) -> None:
    paused = job(tmp_path, comm=14, host=20, pause=20).ranks[0]
    steps = tuple(replace(each, host_comm_ns=11_000_000) for each in paused.steps)
    (verdict,) = judge(job_of([replace(paused, steps=steps)]), Limits(), Known())
    assert (verdict.cause, verdict.measured["sure"]) == (causes.HOST_PAUSE, "likely")
    assert "for 11 % of the step its host is inside a collective" in verdict.reason


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
        mates_ns=ns(comm_us)[::-1],
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


def test_small_collectives_of_tensor_groups_are_none_of_buckets(tmp_path: Path) -> None:
    many = part(200, 200 * 101, about="TENSOR_MODEL_PARALLEL_GROUP", tiny=200)
    (verdict,) = judge(moved_as(tmp_path, many, comm=40, exposed=35), Limits(), Known())
    assert verdict.cause is causes.NOT_OVERLAPPED


def test_a_part_of_what_is_exposed_is_told_with_the_whole(tmp_path: Path) -> None:
    roles = {Role.EXPERT: (30, 20), Role.OTHER: (30, 20)}
    first, _ = judge(job(tmp_path, comm=60, exposed=40, roles=roles), Limits(), Known())
    assert "expert-parallel groups is 20 % of the step, 40 % with all others" in first.reason


def test_what_is_left_out_of_the_communication_is_told(tmp_path: Path) -> None:
    roles = {Role.PIPELINE: (60, 0), Role.OTHER: (32, 32)}
    (only,) = judge(job(tmp_path, comm=92, exposed=32, roles=roles), Limits(), Known())
    assert "communication without that of pipeline groups takes 32 %" in only.reason


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

    def sure(*ranks: RankFacts, **share: Any) -> object:
        steps = (step(**share),)
        facts = job_of([replace(rank, steps=steps) for rank in ranks])
        return judge(facts, Limits(), Known())[0].measured["sure"]

    assert sure(*both, comm=29, exposed=29) == "likely"
    assert sure(*both, comm=30, exposed=29) == "certain"
    assert sure(both[0], comm=30, exposed=29) == "likely"
    assert sure(*(replace(rank, calls=()) for rank in both), comm=30, exposed=29) == "likely"


def table(*ranks: dict[str, Any]) -> JobFacts:
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


FAST: dict[str, Any] = {"compute": 37, "comm": 98, "exposed": 62}
EVEN: dict[str, Any] = {"compute": 40, "comm": 55, "exposed": 50}
TABLES: dict[str, tuple[list[dict[str, Any]], list[tuple[Status, Cause | None, str]]]] = {
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


@pytest.mark.parametrize(
    ("fed", "want"),
    [(0.0, [causes.IDLE]), (9.0, [causes.IDLE]), (15.0, [causes.INPUT_BOUND])],
    ids=["none", "little", "much"],
)
def test_waiting_for_input_is_not_told_as_idle_again(
    tmp_path: Path, fed: float, want: list[Cause]
) -> None:
    (rank,) = job(tmp_path).ranks
    row = replace(step(compute=60, comm=5, exposed=1, input=fed), host_wait_ns=None)
    facts = job_of([replace(rank, layout="ascend", steps=(row,))])
    assert [each.cause for each in judge(facts, Limits(), Known())] == want


def test_what_makes_ranks_uneven_is_a_limit() -> None:
    apart = table(EVEN, {"compute": 44, "comm": 51, "exposed": 46})
    assert judge(apart, Limits(), Known())[0].cause is causes.NOT_OVERLAPPED
    assert judge(apart, Limits(uneven=0.03), Known())[0].cause is causes.STRAGGLER


def test_a_slow_wire_is_told_with_its_size(tmp_path: Path) -> None:
    facts = job(tmp_path, comm=80, exposed=20)
    (wire,) = facts.wires
    (verdict,) = judge(facts, Limits(), Known({"allreduce": 380.0}))
    mean_mb = wire.size_bytes / wire.count / 1e6
    assert f"{wire.kind} of {mean_mb:.0f} MB among {wire.group_size} ranks" in verdict.reason


@pytest.mark.parametrize(
    ("busbw", "overlap", "want"),
    [
        (5.0, 1.0, [causes.SLOW_WIRE]),
        (5.0, 0.0, [causes.SLOW_WIRE, causes.NOT_OVERLAPPED]),
        (30.0, 0.0, [causes.NOT_OVERLAPPED]),
    ],
    ids=["slow alone", "slow and serial", "serial alone"],
)
def test_a_wire_that_was_measured_faster_goes_before_every_setting(
    tmp_path: Path, busbw: float, overlap: float, want: list[Cause]
) -> None:
    """At an eighth of its bandwidth little can hide: no bucket size gives it back."""
    options = {"layers": 8, "kernels": 15, "layer_mb": 25, "busbw": busbw}
    paths, _ = made(tmp_path, ranks=2, overlap=overlap, **options)
    facts = job_of([facts_of(path) for path in paths])
    found = judge(facts, Limits(), Known({"allreduce": 40.0}))
    assert [each.cause for each in found] == want


@pytest.mark.parametrize(
    ("share", "want", "words"),
    [
        ({"compute": 30, "comm": 70, "exposed": 68}, causes.NOT_OVERLAPPED, "of it overlaps"),
        ({"compute": 16, "comm": 83, "exposed": 81}, causes.EXPOSED, "computing 16 %: too little"),
    ],
)
def test_what_nothing_could_hide_is_no_missing_overlap(
    tmp_path: Path, share: dict[str, Any], want: Cause, words: str
) -> None:
    """Beneath so much communication so little computing is no matter of buckets."""
    (verdict,) = judge(job(tmp_path, **share), Limits(), Known())
    assert (verdict.status, verdict.cause) == (Status.FAIL, want)
    assert words in verdict.reason


def test_a_wire_is_held_against_the_same_ranks_only(tmp_path: Path) -> None:
    """Eight of 32 ranks, one in each host, have a NIC each, and the sweep had NVLink besides."""
    facts = job(tmp_path, comm=80, exposed=20)
    known = Known({"allreduce": 380.0})
    assert unlike(facts, Limits(), known) == ""
    part = replace(facts, ranks=(replace(facts.ranks[0], world=32),))
    (verdict,) = judge(part, Limits(), known)
    assert verdict.cause is causes.EXPOSED
    assert "not comparable with the busbw given: allreduce among 8 ranks" in unlike(
        part, Limits(), known
    )
    untold = replace(facts, ranks=(replace(facts.ranks[0], world=None),))
    assert judge(untold, Limits(), known)[0].cause is causes.EXPOSED
    assert "give the busbw" in unlike(facts, Limits(), Known())
    none = "no collective of 16 MB or more tells its bytes: the busbw given is held against nothing"
    assert unlike(replace(facts, wires=()), Limits(), known) == none
    assert unlike(replace(facts, wires=()), Limits(), Known()) == ""


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("380", {"allreduce": 380.0}),
        ("all_gather=350, reduce_scatter=340.5", {"allgather": 350.0, "reduce_scatter": 340.5}),
        ("all_to_all=40,90", {"alltoall": 40.0, "allreduce": 90.0}),
    ],
)
def test_busbw_is_of_an_all_reduce_or_what_is_named(text: str, want: dict[str, float]) -> None:
    assert busbw_told(text) == want


@pytest.mark.parametrize("text", ["", "0", "-3", "nan", "inf", "fast", "ring=380", "all_gather="])
def test_what_is_no_busbw(text: str) -> None:
    with pytest.raises(UsageError, match=r"--busbw: error: .* wanted GB/s"):
        busbw_told(text)


def test_every_cause_names_the_limits_that_tell_it() -> None:
    assert DECIDED_BY.keys() == {cause.slug for cause in causes.CAUSES}
    named = {name for names in DECIDED_BY.values() for name in names}
    assert named == {each.name for each in fields(Limits)}

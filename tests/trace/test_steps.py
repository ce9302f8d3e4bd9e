"""Windows and attribution, on small traces whose numbers can be checked by eye."""

from __future__ import annotations

from pathlib import Path

import pytest

from commcheck.trace.facts import RankFacts
from commcheck.trace.feeding import LATENCY_NS
from commcheck.trace.matching import match
from commcheck.trace.roles import Role, role_of
from tests.trace.chrome import Event, kernel, launch, step, text_of, write, x
from tests.trace.expected import assert_identity, facts_of

AR, SR = "ncclDevKernel_AllReduce_Sum_f32_RING_LL()", "ncclDevKernel_SendRecv()"


def facts(tmp_path: Path, *events: Event) -> RankFacts:
    measured = facts_of(write(tmp_path / "rank0.json", text_of(list(events))))
    for each in measured.steps:
        assert_identity(each)
    return measured


def pair(corr: int, launched: float, start: float, dur: float, name: str = "gemm") -> list[Event]:
    return [launch(launched, 2, corr), kernel(start, dur, corr, name)]


def test_a_step_lasts_from_its_first_device_event_to_the_next_ones(tmp_path: Path) -> None:
    two = facts(
        tmp_path,
        *(step(1, 0, 50), *pair(1, 10, 60, 20), *pair(2, 12, 80, 30, AR)),
        *(step(2, 50, 50), *pair(3, 55, 120, 20)),
    ).steps
    assert [(each.start, each.end) for each in two] == [(60_000, 120_000), (120_000, 140_000)]
    # Launched in step 1 though the device is in the host's step 2 by then.
    assert [(each.kernels, each.comm_kernels) for each in two] == [(2, 1), (1, 0)]
    assert (two[0].compute_ns, two[0].exposed_ns, two[0].idle_ns) == (20_000, 30_000, 10_000)


def test_what_runs_on_into_the_next_step_is_time_of_both(tmp_path: Path) -> None:
    one, two = facts(
        tmp_path,
        *(step(1, 0, 50), *pair(1, 10, 60, 20), *pair(2, 12, 80, 60, AR)),
        *(step(2, 50, 50), *pair(3, 55, 100, 20)),
    ).steps
    assert (one.comm_ns, two.comm_ns) == (20_000, 40_000)
    assert (one.comm_kernels, two.comm_kernels) == (1, 0)
    assert two.overlapped_ns == 20_000


def test_two_streams_at_once_are_one_interval(tmp_path: Path) -> None:
    other = kernel(65, 20, 2, "gemm", tid=8)
    (only,) = facts(tmp_path, step(1, 0, 50), *pair(1, 10, 60, 20), launch(12, 2, 2), other).steps
    assert only.compute_ns == 25_000


def test_without_steps_the_file_is_one(tmp_path: Path) -> None:
    measured = facts(tmp_path, *pair(1, 10, 60, 20), *pair(2, 12, 90, 10))
    (only,) = measured.steps
    assert (only.name, only.host_ns, only.time_ns, only.idle_ns) == ("all", None, 40_000, 10_000)
    assert "no step is marked" in measured.notes[0]


def test_events_of_no_step_are_told(tmp_path: Path) -> None:
    measured = facts(
        tmp_path,
        *pair(9, 1, 2, 3),
        *(step(1, 10, 50), *pair(1, 20, 30, 20), *pair(2, 22, 55, 20)),
        *pair(8, 200, 300, 20),
    )
    assert measured.outside == 2
    assert [each.kernels for each in measured.steps] == [2]
    assert any("2 of 4 device events belong to no step" in note for note in measured.notes)


def test_a_launch_that_ends_after_the_kernel_before_it_is_waited_for(tmp_path: Path) -> None:
    """The begin of the call proves nothing: it starts while the device is busy, and ends late."""
    (waits,) = facts(
        tmp_path,
        *(step(1, 0, 100), launch(1, 4, 1), kernel(10, 8, 1)),
        *(launch(14, 10, 2), kernel(27, 8, 2)),  # begun at 14, done at 24; the device idles from 18
        *(launch(28, 3, 3), kernel(40, 8, 3)),  # done at 31, while the device works until 35
    ).steps
    assert waits.host_wait_ns == 9_000
    assert waits.idle_ns == 100_000 - 10_000 - 24_000


def test_what_a_kernel_waits_for_after_its_launch_is_not_the_host(tmp_path: Path) -> None:
    """Launched 25 us into the gap of an all-to-all that it needs: the rest is communication."""
    (held,) = facts(
        tmp_path,
        *(step(1, 0, 900), *pair(1, 1, 100, 100), *pair(2, 2, 200, 600, SR)),
        *pair(3, 223, 805, 50),  # done at 225
    ).steps
    assert (held.host_wait_ns, held.exposed_unfed_ns) == (0, 0)
    (alone,) = facts(
        tmp_path, *(step(1, 0, 900), *pair(1, 1, 100, 100), *pair(3, 223, 805, 50))
    ).steps
    assert alone.host_wait_ns == 25_000 + LATENCY_NS  # what held it then is on no stream


def test_a_host_that_waits_for_a_collective_is_not_slow(tmp_path: Path) -> None:
    """The next launch comes once the all-reduce is over: the host had waited for it."""
    (only,) = facts(
        tmp_path,
        *(step(1, 0, 900), *pair(1, 1, 100, 100), *pair(2, 2, 200, 600, AR)),
        *pair(3, 810, 815, 50),
    ).steps
    assert (only.host_wait_ns, only.host_gap_ns) == (15_000, 615_000)


def test_a_gap_under_a_collective_that_goes_on_is_the_hosts(tmp_path: Path) -> None:
    (only,) = facts(
        tmp_path,
        *(step(1, 0, 900), *pair(1, 1, 100, 100), *pair(2, 2, 150, 600, AR)),
        *pair(3, 296, 300, 450),
    ).steps
    assert (only.host_wait_ns, only.exposed_unfed_ns) == (100_000, 100_000)


def test_what_is_waited_before_a_steps_first_kernel_is_of_the_step_before(tmp_path: Path) -> None:
    one, two = facts(
        tmp_path,
        *(step(1, 0, 50), *pair(1, 10, 60, 20)),
        *(step(2, 50, 100), launch(110, 2, 2, "cudaMemcpyAsync")),
        *(x("gpu_memcpy", "Memcpy HtoD", 115, 5, tid=8, correlation=2), *pair(3, 118, 124, 20)),
    ).steps
    assert (one.end, one.host_wait_ns, two.host_wait_ns) == (115_000, 35_000, 4_000)
    assert (one.host_gap_ns, two.host_gap_ns) == (0, 0)  # of kernels of one step alone


def fetch(ts: float, dur: float, tid: int = 99) -> Event:
    """The DataLoader's own annotation of a batch that is waited for."""
    name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    return x("user_annotation", name, ts, dur, pid=99, tid=tid)


def test_the_gap_of_a_fetch_is_input_and_no_slow_launch(tmp_path: Path) -> None:
    """At the loop's end, so that it falls before the next step's first kernel."""
    (one, two) = facts(
        tmp_path,
        *(step(1, 0, 5000), *pair(1, 10, 60, 20)),
        *(step(2, 5000, 9000), fetch(5001, 4000), *pair(2, 9100, 9105, 5000)),
    ).steps
    assert one.end == two.start == 9_105_000
    assert (one.input_ns, two.input_ns) == (4_000_000, 0)
    # Before the fetch, and from its end until the launch: the first alone is a pause.
    assert one.host_wait_ns == (5001 - 80 + 9105 - 9001) * 1000
    assert (one.pause_ns, one.longest_pause_ns) == (4_921_000, 4_921_000)


def test_what_computes_beneath_a_fetch_waits_for_nothing(tmp_path: Path) -> None:
    events = [step(1, 0, 900), *pair(1, 10, 100, 300), *pair(2, 12, 420, 100)]
    assert facts(tmp_path, *events, fetch(50, 600)).steps[0].input_ns == (20 + 130) * 1000
    # A thread that fetches ahead keeps nobody waiting.
    assert facts(tmp_path, *events, fetch(50, 600, tid=5)).steps[0].input_ns == 0


def test_a_long_gap_is_a_pause_and_many_short_ones_are_launches(tmp_path: Path) -> None:
    long = [*pair(1, 1, 10, 10), *pair(2, 3000, 3003, 10)]
    (paused,) = facts(tmp_path, step(1, 0, 4000), *long).steps
    assert paused.host_wait_ns == paused.pause_ns == paused.longest_pause_ns == 2_983_000
    short = [each for at in range(9) for each in pair(at, 400 * at, 400 * at + 4, 10)]
    (launches,) = facts(tmp_path, step(1, 0, 4000), *short).steps
    assert (launches.host_wait_ns, launches.pause_ns) == (8 * 390_000, 0)


def test_a_pause_in_a_collective_of_the_host_is_told(tmp_path: Path) -> None:
    """As dist.barrier on a gloo group beside the one of the devices."""
    (only,) = facts(
        tmp_path,
        *(step(1, 0, 4000), *pair(1, 1, 10, 10), *pair(2, 3000, 3003, 10)),
        x("user_annotation", "gloo:barrier", 500, 2000, pid=99, tid=5),
    ).steps
    assert (only.pause_ns, only.host_comm_ns) == (2_983_000, 2_000_000)


def test_without_launches_nobody_knows_who_waited(tmp_path: Path) -> None:
    measured = facts(tmp_path, step(1, 0, 100), kernel(10, 8, 1), kernel(27, 8, 2))
    assert measured.steps[0].host_wait_ns is None
    assert any("whether the host launches fast enough" in note for note in measured.notes)


def of_group(about: str, kind: str = "send") -> dict[str, object]:
    """Arguments of a collective in a group of that description."""
    about_it: dict[str, object] = {"Collective name": kind, "Process Group Description": about}
    return {**about_it, "Process Group Ranks": "[0, 1]", "Group size": 2, "dtype": "Float"}


@pytest.mark.parametrize(
    ("about", "kind", "want"),
    [
        ("PIPELINE_MODEL_PARALLEL_GROUP", "send", (30_000, 0, 5_000, 0)),
        ("mesh_pp", "recv", (30_000, 0, 5_000, 0)),
        ("CONTEXT_PARALLEL_GROUP", "send", (0, 0, 35_000, 0)),
        ("EXPERT_MODEL_PARALLEL_GROUP", "all_to_allv", (0, 0, 35_000, 0)),
        ("TENSOR_MODEL_PARALLEL_GROUP", "allreduce", (0, 0, 5_000, 30_000)),
        ("default_pg", "send", (0, 30_000, 5_000, 0)),
        ("default_pg", "all_to_all", (0, 0, 35_000, 0)),
        (None, "", (0, 30_000, 5_000, 0)),
    ],
)
def test_send_and_receive_are_what_their_group_is_for(
    tmp_path: Path, about: str | None, kind: str, want: tuple[int, ...]
) -> None:
    """A bubble, nobody knows what, exposed, or exposed by nature."""
    args = {} if about is None else of_group(about, kind)
    measured = facts(
        tmp_path,
        *(step(1, 0, 100), *pair(1, 1, 10, 10)),
        *(launch(2, 2, 2), kernel(20, 30, 2, SR, **args), *pair(3, 3, 60, 5, AR)),
    )
    (only,) = measured.steps
    assert only.exposed_ns == 35_000
    told = (only.bubble_ns, only.untold_ns, only.exposed_judged_ns, only.exposed_tensor_ns)
    assert told == want
    between_stages = frozenset({"" if about is None else "[0, 1]"})
    assert measured.pipes == (between_stages if want[0] or want[1] else frozenset())


@pytest.mark.parametrize(
    ("about", "nelems", "group", "want"),
    [
        ("PIPELINE_MODEL_PARALLEL_GROUP", 1, "[0, 1, 2, 3]", (40_000, 0, 0)),
        ("", 1, "[0, 1, 2, 3]", (0, 40_000, 0)),
        ("PIPELINE_MODEL_PARALLEL_GROUP", 1, "[0, 2]", (20_000, 0, 20_000)),  # within a stage
        ("PIPELINE_MODEL_PARALLEL_GROUP", 16_000, "[0, 1, 2, 3]", (20_000, 0, 20_000)),
    ],
)
def test_the_norm_of_all_stages_waits_for_the_last_of_them(
    tmp_path: Path, about: str, nelems: int, group: str, want: tuple[int, ...]
) -> None:
    """One number takes no time of its own. Stages: ranks 0 and 2, and 1 and 3."""
    sized = {"Collective name": "allreduce", "In msg nelems": nelems, "dtype": "Float"}
    norm = {**sized, **of_group("MODEL_PARALLEL_GROUP", "allreduce"), "Process Group Ranks": group}
    (only,) = facts(
        tmp_path,
        *(step(1, 0, 100), *pair(1, 1, 10, 10)),
        *(launch(2, 2, 2), kernel(20, 20, 2, SR, **of_group(about))),
        *(launch(5, 2, 3), kernel(50, 20, 3, AR, **norm)),
    ).steps
    assert (only.bubble_ns, only.untold_ns, only.exposed_judged_ns) == want


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("kuserbuffers_pushrecv(int*, int*, int)", Role.TENSOR),
        ("void userbuffers_fp16_sum_inplace_gpu_rr_rs_oop<8>(int, int)", Role.TENSOR),
        ("void deep_ep::internode::dispatch<false, 8>(int4*)", Role.EXPERT),
        ("void hybrid_ep::combine_kernel<8>()", Role.EXPERT),
        ("void hybrid_ep::device_sync_kernel<8>()", Role.EXPERT),
        ("EpDispatchInterNodeV1Kernel_bf16", Role.EXPERT),
        ("void hybrid_ep::scan<8>()", None),
    ],
)
def test_kernels_of_libraries_for_one_kind_of_groups(
    tmp_path: Path, name: str, role: Role | None
) -> None:
    """They spin until their peers come, and are no computing."""
    measured = facts(tmp_path, step(1, 0, 100), *pair(1, 1, 10, 10), *pair(2, 8, 20, 30, name))
    (only,) = measured.steps
    assert only.compute_ns == (10_000 if role else 40_000)
    assert set(only.roles) == ({role} if role else set())
    # Of which ranks the group is, nothing tells: it is matched with no other rank's.
    assert match([measured.calls, measured.calls], []) == []
    assert measured.pipes == frozenset()


def test_calls_of_one_role_tell_what_kernels_without_arguments_are(tmp_path: Path) -> None:
    """As batch_isend_irecv of pipeline stages leaves them: calls on the host, one bare kernel."""

    def bubble(*roles: str) -> int:
        calls = [
            x("cpu_op", "record_param_comms", 3 + at, 0.5, pid=99, tid=99, **of_group(role))
            for at, role in enumerate(roles)
        ]
        events = (step(1, 0, 100), *pair(1, 1, 10, 10), *calls, *pair(2, 8, 20, 30, SR))
        (only,) = facts(tmp_path, *events).steps
        return only.bubble_ns

    stages = "PIPELINE_MODEL_PARALLEL_GROUP"
    assert bubble(stages, stages) == 30_000
    assert bubble(stages, "CONTEXT_PARALLEL_GROUP") == 0


def test_groups_as_megatron_describes_them_give_it_away(tmp_path: Path) -> None:
    reduce = kernel(20, 30, 2, AR, **of_group("DATA_PARALLEL_GROUP_WITH_CP", "allreduce"))
    assert facts(tmp_path, step(1, 0, 100), launch(2, 2, 2), reduce).framework == "Megatron"
    mesh = kernel(20, 30, 2, AR, **of_group("mesh_dp", "allreduce"))
    assert facts(tmp_path, step(1, 0, 100), launch(2, 2, 2), mesh).framework == ""


@pytest.mark.parametrize(
    ("about", "role"),
    [
        ("TENSOR_MODEL_PARALLEL_GROUP", Role.TENSOR),
        ("mesh_tp", Role.TENSOR),
        ("EXPERT_MODEL_PARALLEL_GROUP", Role.EXPERT),
        ("EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP", Role.EXPERT),
        ("CONTEXT_PARALLEL_GROUP", Role.CONTEXT),
        ("PIPELINE_MODEL_PARALLEL_GROUP", Role.PIPELINE),
        ("DATA_PARALLEL_GROUP_WITH_CP", Role.OTHER),
        ("INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP", Role.OTHER),
        ("EXPERT_DATA_PARALLEL_GROUP", Role.OTHER),
        ("TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP", Role.OTHER),
        ("TENSOR_AND_CONTEXT_PARALLEL_GROUP", Role.OTHER),
        ("EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP", Role.OTHER),
        ("MODEL_PARALLEL_GROUP", Role.OTHER),
        ("EMBEDDING_GROUP", Role.OTHER),
        ("mesh_dp_shard_cp", Role.OTHER),
        ("default_pg", Role.OTHER),
        ("", Role.OTHER),
    ],
)
def test_a_groups_description_tells_what_it_is_for(about: str, role: Role) -> None:
    assert role_of(about) is role


def test_what_waits_for_a_collective_on_the_host_does_not_compute(tmp_path: Path) -> None:
    """FSDP2 waits in a node of autograd, and calls into c10d last as long as their collective."""

    def op(name: str, ts: float, dur: float) -> Event:
        return x("cpu_op", name, ts, dur, pid=99, tid=99)

    (only,) = facts(
        tmp_path,
        *(step(1, 0, 1000), op("aten::addmm", 10, 200)),
        op("c10d::_allgather_base_", 210, 100),
        op("autograd::engine::evaluate_function: RegisterPostBackwardFunctionBackward", 300, 500),
        *(op("RegisterPostBackwardFunctionBackward", 300, 500), op("fsdp::chunk_cat", 310, 40)),
        x("user_annotation", "gloo:all_gather", 210, 500, pid=99, tid=5),
        op("CompiledFunction", 850, 100),
    ).steps
    assert (only.compute_ns, only.comm_ns, only.exposed_ns) == (340_000, 500_000, 460_000)


def test_a_thread_that_trains_may_send_and_receive_itself(tmp_path: Path) -> None:
    """As gloo does it; other collectives have threads of their own, which do not compute."""

    def op(ts: float, dur: float, tid: int) -> Event:
        return x("cpu_op", "aten::addmm", ts, dur, pid=99, tid=tid)

    (only,) = facts(
        tmp_path,
        *(step(1, 0, 1000), op(10, 200, 99), op(600, 100, 99), op(800, 50, 5)),
        x("user_annotation", "gloo:send", 300, 250, pid=99, tid=99),
        x("user_annotation", "gloo:all_reduce", 780, 100, pid=99, tid=5),
    ).steps
    assert (only.compute_ns, only.exposed_ns) == (300_000, 350_000)


def micro_batches(*names: str) -> list[Event]:
    """Steps of 100 us: 80 of computing, and for each name 60 of communication behind it."""
    events: list[Event] = []
    at, corr = 0, 1
    for number, each in enumerate(names):
        mine = each.split()
        events += [step(number, at, 80 + 60 * len(mine) + 20), *pair(corr, at + 1, at + 10, 80)]
        for place, name in enumerate(mine):
            events += pair(corr + place + 1, at + 2, at + 90 + 60 * place, 60, name)
        at += 100 + 60 * len(mine)
        corr += 10
    return events


RS = "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL"
AG = "ncclDevKernel_AllGather_RING_LL"
TREE = "ncclDevKernel_AllReduce_Sum_f32_TREE_LL"


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        # Gradients accumulate: the first cycle and the last are cut.
        (("", AR, "", "", AR, "", "", AR, ""), ["ProfilerStep#2-4", "ProfilerStep#5-7"]),
        (("", "", AR), ["ProfilerStep#0-2"]),
        ((AR, "", AR), ["ProfilerStep#1-2"]),
        ((AG, f"{AG} {RS}", AG, f"{AG} {RS}"), ["ProfilerStep#0-1", "ProfilerStep#2-3"]),
        # Steps that follow no such rule.
        ((AR, AR, ""), None),
        (("", AR, AR), None),
        ((AR, f"{AR} {RS}", AR), None),
        ((AR, f"{AR} {TREE}", AR, f"{AR} {TREE}"), None),  # of another size, no other collective
        (("", "", ""), None),
    ],
)
def test_micro_batches_are_one_step(
    tmp_path: Path, names: tuple[str, ...], steps: list[str] | None
) -> None:
    measured = facts(tmp_path, *micro_batches(*names))
    if steps is None:
        assert len(measured.steps) == len(names)
        assert not any("micro-batches" in note for note in measured.notes)
        return
    assert [each.name for each in measured.steps] == steps
    assert "micro-batches" in measured.notes[0]


def test_what_a_micro_batch_exposes_is_of_the_whole_step(tmp_path: Path) -> None:
    """60 of 360 us, and no median of two that expose nothing and one that does."""
    measured = facts(tmp_path, *micro_batches("", "", AR, "", "", AR))
    assert measured.share("exposed_judged_ns") == pytest.approx(60 / 360, abs=0.02)


def test_outliers_are_named(tmp_path: Path) -> None:
    events: list[Event] = []
    for number, at in enumerate((0, 100, 200, 500, 600)):
        events += [step(number, at, 90), *pair(number + 1, at + 1, at + 5, 50)]
    assert any("ProfilerStep#2" in note for note in facts(tmp_path, *events).notes)

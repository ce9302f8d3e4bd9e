"""Windows and attribution, on small traces whose numbers can be checked by eye."""

from __future__ import annotations

from pathlib import Path

from commcheck.trace.facts import RankFacts
from tests.trace.chrome import Event, kernel, launch, step, text_of, write
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


def test_without_launches_nobody_knows_who_waited(tmp_path: Path) -> None:
    measured = facts(tmp_path, step(1, 0, 100), kernel(10, 8, 1), kernel(27, 8, 2))
    assert measured.steps[0].host_wait_ns is None
    assert any("whether the host launches fast enough" in note for note in measured.notes)


def test_send_and_receive_are_a_bubble(tmp_path: Path) -> None:
    (only,) = facts(
        tmp_path,
        *(step(1, 0, 100), *pair(1, 1, 10, 10)),
        *(*pair(2, 2, 20, 30, SR), *pair(3, 3, 60, 5, AR)),
    ).steps
    assert (only.exposed_ns, only.bubble_ns, only.exposed_judged_ns) == (35_000, 30_000, 5_000)


def test_outliers_are_named(tmp_path: Path) -> None:
    events: list[Event] = []
    for number, at in enumerate((0, 100, 200, 500, 600)):
        events += [step(number, at, 90), *pair(number + 1, at + 1, at + 5, 50)]
    assert any("ProfilerStep#2" in note for note in facts(tmp_path, *events).notes)

"""hccl_test on simulated hosts: its table follows from the ports of their NPUs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from commcheck.demo.npu import NpuState
from commcheck.demo.persona import cast
from commcheck.demo.traffic import answer
from commcheck.jobs import hccl_test
from commcheck.jobs.reading import State

WORDS = (
    *("mpirun", "-H", "gpu-01:8,gpu-02:8", "-np", "16"),
    *("all_gather_test", "-p", "8", "-b", "64M", "-e", "2048M", "-f", "2"),
)


def said(change: Callable[[NpuState], NpuState]) -> tuple[str, int]:
    one, other = cast(2, ["ascend-910b"])
    fleet = {"gpu-01": one, "gpu-02": other.npu(3, change)}
    found = answer(fleet, "gpu-01", WORDS, {})
    return found.text, found.rc


@pytest.mark.parametrize(
    ("change", "peak"),
    [
        (lambda npu: npu, 189.0),
        (lambda npu: replace(npu, speed_mbits=100_000), 95.0),
        (lambda npu: replace(npu, pfc=frozenset()), None),
    ],
    ids=["healthy", "one-port-at-half", "no-pfc"],
)
def test_the_slowest_port_times_their_number(
    change: Callable[[NpuState], NpuState], peak: float | None
) -> None:
    (run,) = hccl_test.parse(said(change)[0], collective="all_gather", nranks=16)
    assert run.state is State.COMPLETE
    best = [row.best for row in run.rows]
    if peak is None:
        assert best[-1] < 0.7 * max(best)
    else:
        assert max(best) == pytest.approx(peak, rel=0.02)


def test_a_port_that_is_down_ends_the_run() -> None:
    text, code = said(lambda npu: replace(npu, link_up=False))
    (run,) = hccl_test.parse(text)
    assert (run.state, code) == (State.LAUNCH_FAILED, 12)

"""The training step of the embedded fleet: it follows from the hosts, and is found over SSH."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from commcheck.command import Output
from commcheck.demo.fault import known_faults
from commcheck.demo.state import HostState, healthy
from commcheck.demo.training import printed
from commcheck.jobs.job import Answered, Ran
from commcheck.jobs.locate import Run
from commcheck.jobs.step.job import StepLimits, step_job
from commcheck.model import Status
from commcheck.trace.causes import STRAGGLER
from tests.e2e.test_loads import climb
from tests.jobs.steps import member

OPTIONS = {"device": "cuda", "ranks": 8, "steps": 3, "sharding": "ddp"}


def read(text: str) -> Ran:
    one = member()
    answered = Answered(outputs=(Output(text),))
    return step_job().read(Run((one.name,)), {one.name: one}, StepLimits(), answered)


def straggling(host: HostState) -> HostState:
    return known_faults()["straggler"].change(host)


def test_a_healthy_host_hides_its_communication() -> None:
    (verdict,) = read(printed(healthy(1), OPTIONS)).verdicts
    assert verdict.status is Status.PASS
    assert "(nccl): rank " in verdict.reason


def test_a_slow_gpu_is_the_rank_that_all_wait_for() -> None:
    (verdict, *_) = read(printed(straggling(healthy(1)), OPTIONS)).verdicts
    assert (verdict.status, verdict.cause) == (Status.FAIL, STRAGGLER)
    assert "rank 2 starts its collectives" in verdict.reason


def test_without_nvlink_nothing_hides() -> None:
    host = healthy(1)
    for number in range(8):
        host = host.gpu(number, lambda gpu: replace(gpu, links_gbytes=(None,) * 18))
    (verdict, *_) = read(printed(host, OPTIONS)).verdicts
    assert verdict.status is Status.FAIL
    assert verdict.cause is not STRAGGLER
    assert verdict.measured["exposed_percent_of_step"] > 30  # type: ignore[operator] # a number


@pytest.mark.parametrize(
    ("options", "wanted"),
    [({"device": "npu"}, Status.SKIP), ({"ranks": 9}, Status.ERROR)],
)
def test_what_the_host_has_not_is_told(options: dict[str, object], wanted: Status) -> None:
    (verdict,) = read(printed(healthy(1), {**OPTIONS, **options})).verdicts
    assert verdict.status is wanted


def test_the_slow_gpu_is_found_over_ssh(tmp_path: Path) -> None:
    play = {"layer": "runtime", "checks": ["runtime.train-step"]}
    (tmp_path / "step.yaml").write_text(
        yaml.safe_dump({"name": "step", "allow": ["load"], "plays": [play]})
    )
    states = [healthy(1), straggling(healthy(2))]
    verdicts = climb(states, tmp_path / "step.yaml", tmp_path / "reports")
    found = {
        each["subject"]: (each["status"], each["cause"])
        for each in verdicts
        if each["check"] == "runtime.train-step"
    }
    assert found == {"gpu-01": ("pass", None), "gpu-02": ("fail", STRAGGLER.slug)}

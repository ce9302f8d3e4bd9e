"""The training step of the embedded fleet: it follows from the hosts, and is found over SSH."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from commcheck.command import Output
from commcheck.demo.facts import OVERLAPS
from commcheck.demo.fault import known_faults
from commcheck.demo.job import trained
from commcheck.demo.state import HostState, healthy
from commcheck.demo.training import printed
from commcheck.jobs.job import Answered, Ran
from commcheck.jobs.outcomes import Run
from commcheck.jobs.step.job import fleet_job, step_job
from commcheck.jobs.step.limits import FleetLimits, StepLimits
from commcheck.model import Status
from commcheck.trace.causes import (
    GATHER_BOUND,
    LAUNCH_BOUND,
    NOT_OVERLAPPED,
    SMALL_COLLECTIVES,
    STRAGGLER,
)
from tests.e2e.test_loads import climb
from tests.jobs.steps import member

OPTIONS = {"device": "cuda", "ranks": 8, "steps": 3, "sharding": "ddp", "command": []}
FOUND = {
    "straggler": STRAGGLER,
    "launch-bound": LAUNCH_BOUND,
    "tiny-buckets": SMALL_COLLECTIVES,
    "no-overlap": NOT_OVERLAPPED,
    "zero3-gather": GATHER_BOUND,
}
"""What the training of a host with a fault shows, and nothing else."""


def read(text: str) -> Ran:
    one = member()
    answered = Answered(outputs=(Output(text),))
    return step_job().read(Run((one.name,)), {one.name: one}, StepLimits(), answered)


def straggling(host: HostState) -> HostState:
    return known_faults()["straggler"].change(host)


def test_a_healthy_host_hides_its_communication() -> None:
    (verdict,) = read(printed([healthy(1)], 0, OPTIONS)).verdicts
    assert verdict.status is Status.PASS
    assert "(nccl): rank " in verdict.reason


def test_a_slow_gpu_is_the_rank_that_all_wait_for() -> None:
    (verdict, *_) = read(printed([straggling(healthy(1))], 0, OPTIONS)).verdicts
    assert (verdict.status, verdict.cause) == (Status.FAIL, STRAGGLER)
    assert "rank 2 starts its collectives" in verdict.reason


@pytest.mark.parametrize("name", FOUND)
def test_each_fault_shows_in_the_step_and_nothing_else(name: str) -> None:
    host = known_faults()[name].change(healthy(1))
    command = dict(host.declared).get("commcheck_train_command", [])
    (verdict,) = read(printed([host], 0, {**OPTIONS, "command": command})).verdicts
    assert (verdict.status, verdict.cause) == (Status.FAIL, FOUND[name])


def test_the_sites_training_with_good_flags_passes() -> None:
    _, command = trained((*OVERLAPS, "--ddp-bucket-size", "40000000"))
    (verdict,) = read(printed([healthy(1)], 0, {**OPTIONS, "command": command})).verdicts
    assert verdict.status is Status.PASS


def test_without_nvlink_nothing_hides() -> None:
    host = healthy(1)
    for number in range(8):
        host = host.gpu(number, lambda gpu: replace(gpu, links_gbytes=(None,) * 18))
    (verdict, *_) = read(printed([host], 0, OPTIONS)).verdicts
    assert verdict.status is Status.FAIL
    assert verdict.cause is not STRAGGLER
    assert verdict.measured["exposed_percent_of_step"] > 30  # type: ignore[operator] # a number


@pytest.mark.parametrize(
    ("options", "wanted"),
    [({"device": "npu"}, Status.SKIP), ({"ranks": 9}, Status.ERROR)],
)
def test_what_the_host_has_not_is_told(options: dict[str, object], wanted: Status) -> None:
    (verdict,) = read(printed([healthy(1)], 0, {**OPTIONS, **options})).verdicts
    assert verdict.status is wanted


def book(folder: Path, *checks: str) -> Path:
    path = folder / "step.yaml"
    play = {"layer": "runtime", "checks": list(checks)}
    path.write_text(yaml.safe_dump({"name": "step", "allow": ["load"], "plays": [play]}))
    return path


def of(verdicts: Sequence[dict[str, Any]], check: str) -> dict[str, list[tuple[str, str]]]:
    """Status and cause, or else kind, of every verdict by subject."""
    found: dict[str, list[tuple[str, str]]] = {}
    for each in verdicts:
        if each["check"] == check:
            what = each["cause"] or each["kind"]
            found.setdefault(each["subject"], []).append((each["status"], what))
    return found


@pytest.mark.slow
def test_every_fault_of_the_training_is_found_over_ssh(tmp_path: Path) -> None:
    states = [healthy(1)]
    for number, name in enumerate(FOUND, 2):
        states.append(known_faults()[name].change(healthy(number)))
    verdicts = climb(states, book(tmp_path, "runtime.train-step"), tmp_path / "reports")
    assert of(verdicts, "runtime.train-step") == {
        "gpu-01": [("pass", "")],
        **{f"gpu-0{n}": [("fail", cause.slug)] for n, cause in enumerate(FOUND.values(), 2)},
    }


@pytest.mark.slow
def test_over_all_hosts_the_late_one_is_named_over_ssh(tmp_path: Path) -> None:
    states = [healthy(1), straggling(healthy(2)), healthy(3)]
    verdicts = climb(states, book(tmp_path, "runtime.train-fleet"), tmp_path / "reports")
    assert of(verdicts, "runtime.train-fleet") == {
        "@all": [("fail", STRAGGLER.slug)],
        "gpu-01": [("skip", "blocked")],
        "gpu-02": [("fail", STRAGGLER.slug)],
        "gpu-03": [("skip", "blocked")],
    }


def test_a_lossy_network_is_seen_between_hosts_and_not_inside() -> None:
    lossy = known_faults()["pfc-off"].change(healthy(2))
    inside = read(printed([lossy], 0, OPTIONS))
    assert inside.verdicts[0].status is Status.PASS
    hosts = [healthy(1), lossy]
    both = {host.name: (Output(printed(hosts, node, OPTIONS)),) for node, host in enumerate(hosts)}
    run, members = Run(tuple(both)), {name: member(name=name) for name in both}
    answered = Answered(both["gpu-01"], by_host=both)
    (verdict, *_) = fleet_job().read(run, members, FleetLimits(), answered).verdicts
    assert verdict.status is Status.FAIL
    assert "DDP step of 16 ranks" in verdict.reason

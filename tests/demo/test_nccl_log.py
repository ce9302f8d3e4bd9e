"""The logs that the fleet's jobs write follow from the hosts, and are judged over all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commcheck.demo.fault import known_faults
from commcheck.demo.nccl_log import logs, members
from commcheck.demo.persona import cast
from commcheck.demo.state import HostState, healthy
from commcheck.model import Status
from commcheck.nccl.case import Case
from commcheck.nccl.judge import judge
from commcheck.nccl.site import site_of
from tests.demo.instant import climb
from tests.nccl.made import read_all


def with_fault(name: str, number: int = 2, hosts: int = 2) -> list[HostState]:
    """A fleet of which one host has a fault."""
    states = cast(hosts)
    states[number - 1] = known_faults()[name].change(states[number - 1])
    return states


def case_of(states: Sequence[HostState]) -> Case:
    texts = {file.path: file.text for state in states for file in logs(state, states)}
    return Case(read_all(texts), site_of(None))


@pytest.mark.parametrize("persona", ["h100-roce", "h200-ib", "a100-roce", "b200-roce"])
def test_a_healthy_job_is_read_as_one(persona: str) -> None:
    states = cast(2, [persona])
    (verdict,) = judge(case_of(states)).verdicts
    assert (verdict.status, verdict.rule) == (Status.PASS, "LOG-055")
    assert verdict.reason == (
        "all 16 ranks on 2 hosts came up, network IB, GPU Direct on every rank, "
        "8 rings with 2 host crossings each"
    )


def test_hosts_of_two_kinds_have_no_job_together() -> None:
    states = cast(2, ["h100-roce", "h200-ib"])
    assert [members(state, states) for state in states] == [[states[0]], [states[1]]]
    assert len(case_of(states).comms) == 2


def test_a_job_that_is_not_there_logs_nothing() -> None:
    assert list(logs(replace(healthy(1), job=None), [healthy(1)])) == []


@pytest.mark.parametrize(
    ("fault", "rules"),
    [
        ("gid-v1-only", {"LOG-001"}),
        ("link-down", {"LOG-007", "LOG-024"}),
        ("no-gpudirect", {"LOG-026"}),
        ("env-socket-forced", {"LOG-001"}),
    ],
)
def test_what_is_wrong_with_a_host_shows_in_the_log(fault: str, rules: set[str]) -> None:
    found = judge(case_of(with_fault(fault))).verdicts
    assert {verdict.rule for verdict in found if verdict.cause} & rules


def verdicts_of(folder: Path) -> Mapping[tuple[str, str], Any]:
    (run,) = (each for each in folder.glob("2*") if each.is_dir())
    told = json.loads((run / "results.json").read_text())
    found = {(each["subject"], each["check"]): each for each in told["verdicts"]}
    return {**found, ("", ""): told}


def test_layer_1_explains_what_the_library_says(tmp_path: Path) -> None:
    """RoCE v1 on one host takes all ranks of the job to sockets."""
    assert climb(with_fault("gid-v1-only", hosts=4), tmp_path) == 1
    found = verdicts_of(tmp_path)
    other = found["gpu-01", "library.log"]
    assert (other["status"], other["kind"], other["follows"]) == ("skip", "blocked", "gid-v1-only")
    assert other["reason"] == (
        "consequence of physical.roce-v2-gid (gid-v1-only) on gpu-02 mlx5_0: "
        "16 ranks on gpu-[01-02] use network Socket, although they have RDMA NICs"
    )
    assert found["gpu-02", "library.log"]["kind"] == "gated"
    assert found["gpu-03", "library.log"]["status"] == "pass"
    assert found["gpu-03", "library.log"]["reason"].startswith("all 16 ranks on 2 hosts came up")
    said = found["", ""]["summary"]["verdict"]
    assert (said["layer"], said["cause"]) == ("physical", "gid-v1-only")
    summary = next(tmp_path.glob("2*/summary.md")).read_text()
    assert "follows from it: `library.log` on 1 host `gpu-01`" in summary
    assert found["gpu-01", "runtime.xid"]["kind"] != "gated"


def test_a_variable_explains_what_the_library_says(tmp_path: Path) -> None:
    assert climb(with_fault("env-socket-forced"), tmp_path) == 1
    found = verdicts_of(tmp_path)
    assert found["gpu-02", "library.env"]["status"] == "fail"
    for host in ("gpu-01", "gpu-02"):
        assert found[host, "library.log"]["follows"] == "env-tcp-forced"

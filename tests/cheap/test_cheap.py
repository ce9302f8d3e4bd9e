"""The fleet that runs nothing, and the worker processes that a run over it may have."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commcheck.discover import discover
from tests.cheap import CHECKS, Answer, CheapFleet, Script, healthy_script, script_of_two
from tests.sshd import descendants

COMMCHECK = str(Path(sys.executable).parent / "commcheck")


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Script:
    return script_of_two(tmp_path_factory.mktemp("empty"))


@pytest.fixture(scope="module")
def fleet(script: Script) -> Iterator[CheapFleet]:
    with CheapFleet(12, script) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def slow_fleet(script: Script) -> Iterator[CheapFleet]:
    command, answer = next(iter(script.answers.items()))
    slow = Answer(answer.stdout, answer.rc, seconds=60)
    with CheapFleet(6, script.with_answers({command: slow})) as fleet:
        yield fleet


def start(fleet: CheapFleet, out: Path, *more: str) -> subprocess.Popen[bytes]:
    """The same climb for all tests, in its own process group as a shell's job is."""
    checks = [word for check in CHECKS for word in ("-t", check)]
    return subprocess.Popen(
        [
            COMMCHECK,
            "run",
            *fleet.arguments,
            *checks,
            "-o",
            str(out),
            *more,
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def results(out: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((out / "latest" / "results.json").read_text())
    return document


def statuses(out: Path) -> list[tuple[str, str, str]]:
    return [(each["check"], each["subject"], each["status"]) for each in results(out)["verdicts"]]


@pytest.mark.slow
def test_every_check_there_is_passes_on_them(tmp_path: Path) -> None:
    """What the benchmark of the whole climb rests on: scripts are answered, too."""
    with CheapFleet(2, healthy_script(discover((), cwd=tmp_path))) as fleet:
        words = [COMMCHECK, "run", *fleet.arguments, "-o", str(tmp_path)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert {status for *_, status in statuses(tmp_path)} == {"pass", "skip"}


def workers_of(process: subprocess.Popen[bytes], count: int, out: Path) -> list[int]:
    """The worker processes, once every one of them has a host that keeps it waiting."""
    ends = time.monotonic() + 30
    while time.monotonic() < ends:
        pids = descendants(process.pid)
        begun = list(out.glob("latest/frames/*.ndjson"))
        if len(pids) == count and len(begun) == 6:
            return pids
        time.sleep(0.05)
    raise AssertionError(f"no {count} workers at work")


def wait_until_gone(pids: list[int], limit_s: float = 20) -> None:
    ends = time.monotonic() + limit_s
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_the_hosts_are_healthy_and_workers_come_to_the_same(
    fleet: CheapFleet, tmp_path: Path
) -> None:
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    assert start(fleet, alone).wait(60) == 0
    assert start(fleet, shared, "--workers", "3").wait(60) == 0
    said = statuses(alone)
    assert said == statuses(shared)
    assert len({subject.partition("/")[0] for _, subject, _ in said}) == 12
    assert {status for _, _, status in said} == {"pass"}
    # The frames too, but for their times.
    for name in ("node-0001.ndjson", "node-0012.ndjson"):
        one, other = (
            [
                json.loads(line)
                for line in (out / "latest" / "frames" / name).read_text().splitlines()
            ]
            for out in (alone, shared)
        )
        assert [(each["key"], each["stdout"]) for each in one] == [
            (each["key"], each["stdout"]) for each in other
        ]


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_own_hosts_and_no_more(
    slow_fleet: CheapFleet, tmp_path: Path
) -> None:
    process = start(slow_fleet, tmp_path, "--workers", "3", "--host-deadline", "6")
    first, *_ = workers_of(process, 3, tmp_path)
    os.kill(first, signal.SIGKILL)
    assert process.wait(60) == 3
    unreached = results(tmp_path)["run"]["not_reached"]
    assert sorted(unreached.values()) == ["host-deadline"] * 4 + ["worker-lost"] * 2


@pytest.mark.slow
def test_an_interrupt_ends_every_worker_and_writes_the_reports(
    slow_fleet: CheapFleet, tmp_path: Path
) -> None:
    process = start(slow_fleet, tmp_path, "--workers", "2")
    pids = workers_of(process, 2, tmp_path)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    assert process.wait(30) == 130
    assert results(tmp_path)["run"]["state"] == "interrupted"
    wait_until_gone(pids)


def test_workers_do_not_outlive_a_killed_parent(slow_fleet: CheapFleet, tmp_path: Path) -> None:
    process = start(slow_fleet, tmp_path, "--workers", "2")
    pids = workers_of(process, 2, tmp_path)
    process.kill()
    process.wait(10)
    wait_until_gone(pids)

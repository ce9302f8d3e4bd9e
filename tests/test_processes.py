"""Analyses that several processes share: interrupted, and one of them killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commcheck.nccl.offline import APART_BYTES
from tests.trace import make_trace


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two, each of which takes a second to read."""
    folder = tmp_path_factory.mktemp("traces")
    options = make_trace.variant(name="big", ranks=1, world=2, steps=50, layers=24, kernels=16)
    (path,), _ = make_trace.make(str(folder), options)
    (folder / "once-more.json").hardlink_to(path)
    return folder


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Large enough for a process of its own."""
    path = tmp_path_factory.mktemp("logs") / "job.log"
    line = "gpu-01:4100:4200 [0] NCCL INFO Connected all trees\n"
    path.write_text(line * (4 * APART_BYTES // len(line)))
    return path


@contextmanager
def at_work(
    kind: str, path: Path, out: Path, how: str = "default"
) -> Iterator[subprocess.Popen[str]]:
    """An analysis in a process group of its own, as a shell begins it."""
    words = ["analyze", kind, str(path), "--processes", "2", "--out", str(out)]
    process = subprocess.Popen(
        ["env", f"--{how}-signal=INT", sys.executable, "-m", "commcheck", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def children(process: subprocess.Popen[str]) -> list[int]:
    """Its processes, once there are any, the one started last at the end."""
    told = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    for _ in range(1000):
        if found := [int(each) for each in told.read_text().split()]:
            return found
        time.sleep(0.01)
    raise AssertionError("it started no process")


@pytest.mark.flaky(reruns=2)  # processes and moments, as the tests that start servers
@pytest.mark.parametrize("kind", ["trace", "log"])
@pytest.mark.parametrize("later_s", [0.0, 0.3])
def test_ctrl_c_ends_them_all_and_none_has_a_word_to_say(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, later_s: float
) -> None:
    path = request.getfixturevalue("traces" if kind == "trace" else "log")
    with at_work(kind, path, tmp_path) as process:
        started = children(process)
        time.sleep(later_s)
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=30)
        assert said.strip() == ""
        assert process.returncode in (130, -signal.SIGINT)  # to a shell they are the same
    ends = time.monotonic() + 5  # Python's own, which keeps the others' semaphores, goes last
    while left := [each for each in started if Path(f"/proc/{each}").exists()]:
        assert time.monotonic() < ends, left
        time.sleep(0.01)


def test_behind_an_ampersand_none_of_them_hears_it(traces: Path, tmp_path: Path) -> None:
    with at_work("trace", traces, tmp_path, "ignore") as process:
        children(process)
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert process.returncode in (0, 1), said


def test_a_process_that_was_killed_is_one_clear_line(traces: Path, tmp_path: Path) -> None:
    with at_work("trace", traces, tmp_path) as process:
        while len(started := children(process)) < 3:  # two, and the one that Python keeps beside
            time.sleep(0.01)
        os.kill(started[-1], signal.SIGKILL)
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 2
    assert said.strip().startswith("error: a process that read traces was killed")

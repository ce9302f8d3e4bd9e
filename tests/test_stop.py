"""The ways in which a run is stopped or stands still, and a disk that keeps none of the words."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from commcheck import stillness
from commcheck.attempts import begin
from commcheck.deliver import Delivery
from commcheck.errors import NotKept
from commcheck.prepare import Choice, prepare
from commcheck.report.folder import RunFolder
from commcheck.report.progress import NoProgress
from commcheck.run import Climber
from commcheck.stop import Stop


def until(condition: Callable[[], object]) -> None:
    ends = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_a_disk_that_keeps_no_word_of_it_keeps_no_run_from_its_end() -> None:
    """pytest makes a failure of what is raised in a thread."""
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        raise NotKept("No space left on device")

    stop = Stop(say)
    with stop.on_signals(0.05):
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.event.wait(5)
        until(lambda: len(said) == 2)
    assert stop.exit_code == 143
    assert "SIGTERM: ending every session" in str(said)
    assert "deadline of 0.05 s is over" in str(said)


def scarce(_self: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_machine_without_a_thread_left_stops_all_the_same_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    stop = Stop(said.append)
    with stop.on_signals():
        monkeypatch.setattr(threading.Thread, "start", scarce)
        os.kill(os.getpid(), signal.SIGTERM)
        until(stop.event.is_set)
    assert stop.exit_code == 143
    assert "SIGTERM: ending every session" in str(said)


def test_a_run_that_begins_without_a_thread_left_can_be_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threading.Thread, "start", scarce)
    stop = Stop(lambda _text: pytest.fail("there is no thread to say it in"))
    with stop.on_signals():
        os.kill(os.getpid(), signal.SIGTERM)
        until(stop.event.is_set)
    assert stop.exit_code == 143


def test_a_signal_that_comes_while_a_thread_is_being_started_waits_for_nothing() -> None:
    """threading holds a lock then, and whoever starts another thread there waits for himself."""
    said: list[str] = []
    stop = Stop(said.append)
    with stop.on_signals(), threading._active_limbo_lock:  # type: ignore[attr-defined] # of CPython
        os.kill(os.getpid(), signal.SIGTERM)
        until(lambda: said)
    assert stop.exit_code == 143


def test_words_that_hang_hold_up_no_end() -> None:
    over = threading.Event()

    def hang(_text: str) -> None:
        over.wait(30)

    stop = Stop(hang)
    began = time.monotonic()
    with stop.on_signals():
        os.kill(os.getpid(), signal.SIGTERM)
    assert time.monotonic() - began < 10
    over.set()


def test_a_run_that_cannot_go_on_gives_the_terminal_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The live view hides the cursor, and redraws until it is told to end."""
    shown = Recorder()
    prepared = prepare(Choice(inventory=("gpu-01,",), only=("physical.reachable",)), cwd=tmp_path)
    attempt = begin(prepared, Choice(), {}, Delivery(out=tmp_path))
    climber = Climber(prepared, attempt.info, attempt.folder, shown)

    def full(_folder: RunFolder, _event: object) -> None:
        raise NotKept("No space left on device")

    monkeypatch.setattr(RunFolder, "event", full)
    with pytest.raises(NotKept):
        climber.climb(
            lambda _host: pytest.fail("nobody is visited"),
            Stop(climber.note),
            forks=1,
            deadline_s=0.0,
            host_deadline_s=1.0,
        )
    assert shown.finished


class Recorder(NoProgress):
    """Knows whether it was told to end."""

    finished = False

    def finish(self) -> None:
        """Note it."""
        self.finished = True


def test_standing_still_is_told_once_for_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock runs on by an hour while nobody looks, as in a machine that sleeps."""
    said: list[str] = []
    slept = [0.0]
    clock = time.clock_gettime
    monkeypatch.setattr(stillness, "_LOOK_S", 0.01)
    monkeypatch.setattr(time, "clock_gettime", lambda number: clock(number) + slept[0])

    def say(text: str) -> None:
        said.append(text)
        raise NotKept("No space left on device")

    with stillness.watched(say):
        time.sleep(0.1)
        assert said == []
        slept[0] = 3600.0
        until(lambda: said)
        time.sleep(0.1)
    assert len(said) == 1
    assert "stood still for 3600 s" in said[0]

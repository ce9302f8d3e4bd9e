"""This machine as a host."""

from __future__ import annotations

import os
import resource
import threading
import time
import tracemalloc
from pathlib import Path

import pytest

from commcheck.collect.base import SUBJECTS, Frame, Frames
from commcheck.collect.local import LocalPipe, LocalVisitor
from commcheck.collect.session import Chunk, Session, converse
from commcheck.errors import HostDeadline, Interrupted, Unreachable
from commcheck.model import Host
from tests.collect.shells import carriers, command, script, visit, wait_until

MARK = f"local-{os.getpid()}"


def visitor(**settings: object) -> LocalVisitor:
    return LocalVisitor(lambda host: Session(mark=f"{MARK}.{host.name}", **settings))  # type: ignore[arg-type]


def test_a_visit_hands_over_the_subjects_and_every_answer_in_order() -> None:
    frames = Frames()
    requests = [command("echo", str(number)) for number in range(5)]
    visitor().visit(Host("a"), lambda _subjects: requests, frames)
    assert [frame.key for frame in frames] == [SUBJECTS, *(each.key for each in requests)]
    assert b"kernel Linux" in frames[0].stdout


def test_answers_arrive_while_later_commands_still_run() -> None:
    arrived: dict[str, float] = {}

    def sink(*frames: Frame) -> None:
        arrived.update((frame.key, time.monotonic()) for frame in frames)

    requests = [command("echo", "first"), command("sleep", "1")]
    visitor().visit(Host("a"), lambda _subjects: requests, sink)
    first, last = (arrived[each.key] for each in requests)
    assert last - first > 0.8


def test_stop_from_another_thread_ends_the_visit_and_what_runs() -> None:
    local = visitor()
    frames = Frames()
    errors: list[Exception] = []

    def work() -> None:
        try:
            requests = [script("setsid sleep 60 & sleep 60", timeout_s=60)]
            local.visit(Host("a"), lambda _subjects: requests, frames)
        except Interrupted as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert wait_until(lambda: len(carriers(f"{MARK}.a")) > 6, 5.0)
    local.stop()
    thread.join(4.0)
    assert not thread.is_alive()
    assert len(errors) == 1
    assert wait_until(lambda: not carriers(f"{MARK}.a"), 2.0)
    with pytest.raises(Interrupted):
        local.visit(Host("b"), lambda _subjects: [], frames)


def test_the_deadline_ends_the_visit_and_what_runs() -> None:
    start = time.monotonic()
    with pytest.raises(HostDeadline):
        requests = [command("sleep", "60", timeout_s=60)]
        visitor(deadline_s=1.0).visit(Host("a"), lambda _subjects: requests, lambda *_frames: None)
    assert time.monotonic() - start < 3.5
    assert wait_until(lambda: not carriers(f"{MARK}.a"), 2.0)


def test_a_shell_that_is_none_is_unreachable(tmp_path: Path) -> None:
    session = Session(mark=MARK)
    with pytest.raises(Unreachable, match="cannot start"):
        visit(str(tmp_path / "no-shell"), [], session)
    with pytest.raises(Unreachable, match="it said nothing"):
        visit("/bin/true", [], session)


def test_a_flood_is_cut_with_bounded_memory() -> None:
    # A login shell that floods before any runner runs.
    flood = LocalPipe(("/bin/sh", "-c", "head -c 100000000 /dev/zero"))
    tracemalloc.start()
    try:
        with pytest.raises(Exception, match="do not end"):
            converse(flood, Session(mark=MARK), lambda _subjects: [], lambda *_frames: None)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_a_pipe_sends_receives_and_closes() -> None:
    pipe = LocalPipe(("/bin/sh", "-c", "cat; echo done >&2"))
    data = os.urandom(1 << 20)
    got = bytearray()
    sender = threading.Thread(target=pipe.send, args=(data,))
    sender.start()
    while len(got) < len(data):
        chunk = pipe.receive(5.0)
        assert chunk
        got += chunk.data
    sender.join()
    assert bytes(got) == data
    assert pipe.receive(0.01) is None
    pipe.hang_up()
    ends = {pipe.receive(5.0), pipe.receive(5.0), pipe.receive(5.0)}
    assert ends == {Chunk("err", b"done\n"), Chunk("out", b""), Chunk("err", b"")}
    pipe.close()
    pipe.close()
    with pytest.raises(OSError, match="closed"):
        pipe.send(b"x")


def test_a_pipe_works_where_more_than_a_thousand_files_are_open() -> None:
    """select(2) knows no descriptor beyond 1023, and --forks 300 has them."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, limits[1]), limits[1]))
    others: list[int] = []
    try:
        while not others or others[-1] < 1024:
            others.append(os.open(os.devnull, os.O_RDONLY))
        pipe = LocalPipe(("/bin/echo", "said"))
        try:
            assert pipe.receive(5.0) == Chunk("out", b"said\n")
        finally:
            pipe.close()
    finally:
        for descriptor in others:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_one_that_we_may_not_kill_is_left_and_hides_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It runs as root, by sudo."""

    def refuse(_group: int, _number: int) -> None:
        raise PermissionError

    pipe = LocalPipe(("/bin/sleep", "60"), leave_s=0.05)
    with monkeypatch.context() as patch:
        patch.setattr(os, "killpg", refuse)
        began = time.monotonic()
        pipe.close()
        assert time.monotonic() - began < 1
    pipe.close()

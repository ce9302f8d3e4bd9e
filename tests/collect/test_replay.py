"""Recorded frames as a host."""

from __future__ import annotations

import pytest

from commcheck.collect.base import SUBJECTS, Frame, Frames, Request
from commcheck.collect.replay import ReplayVisitor
from commcheck.errors import Interrupted, Unreachable
from commcheck.model import Host
from tests.collect.shells import command


def frame(key: str, stdout: bytes = b"") -> Frame:
    return Frame(key, stdout, b"", 0, 1.0, 2.0)


RECORDED = {
    "a": [
        frame(SUBJECTS, b"kernel Linux\n"),
        frame("once: two", b"old"),
        frame("once: one", b"1"),
        frame("once: two", b"new"),
    ]
}


def test_what_was_recorded_answers_in_the_order_asked() -> None:
    got = Frames()
    asked: list[Frame] = []

    def ask(subjects: Frame) -> list[Request]:
        asked.append(subjects)
        return [command("one"), command("never-recorded"), command("two")]

    visitor = ReplayVisitor(lambda name: RECORDED.get(name, []))
    visitor.visit(Host("a"), ask, got)
    assert [(each.key, each.stdout) for each in got[1:]] == [
        ("once: one", b"1"),
        ("once: two", b"new"),
    ]
    assert asked == got[:1]


def test_a_host_without_subjects_is_unreachable() -> None:
    visitor = ReplayVisitor(lambda name: RECORDED.get(name, []))
    with pytest.raises(Unreachable) as caught:
        visitor.visit(Host("b"), lambda _subjects: [], lambda *_frames: None)
    assert caught.value.code == "not-recorded"


def test_nothing_is_visited_after_stop() -> None:
    visitor = ReplayVisitor(lambda name: RECORDED[name])
    visitor.stop()
    with pytest.raises(Interrupted):
        visitor.visit(Host("a"), lambda _subjects: [], lambda *_frames: None)

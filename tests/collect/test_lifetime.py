"""Visits past their deadline are ended, also after this machine had no thread left for a while."""

from __future__ import annotations

import threading
import time

import pytest

from commcheck.collect import lifetime
from commcheck.collect.lifetime import Supervisor, Visit


def test_visits_are_watched_again_once_there_are_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifetime, "GRACE_S", 0.0)
    supervisor = Supervisor(time.monotonic)

    def scarce(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", scarce)
        with (
            pytest.raises(RuntimeError, match="new thread"),
            supervisor.watching(Visit("gpu-01", 0.05, time.monotonic)),
        ):
            pytest.fail("nobody watches")
    closed = threading.Event()
    visit = Visit("gpu-02", 0.05, time.monotonic)
    with supervisor.watching(visit):
        visit.hold(closed.set)
        assert closed.wait(5)

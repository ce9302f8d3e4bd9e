"""Sessions that stay open while runs go on, where hosts hang or this machine has no threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from commcheck.collect.base import Ask, Sink
from commcheck.jobs import guards
from commcheck.jobs.guards import Guard, close_all, open_all
from commcheck.model import Host


class Frozen:
    """A host that takes the connection and says nothing more, not even when it is to end."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def visit(self, _host: Host, _ask: Ask, _sink: Sink) -> None:
        self.over.wait(30)

    def stop(self) -> None:
        pass


@pytest.fixture
def frozen() -> Iterator[Frozen]:
    visitor = Frozen()
    yield visitor
    visitor.over.set()


def guards_by(visitor: Frozen, count: int) -> dict[str, Guard]:
    hosts = [Host(f"gpu-{number}") for number in range(count)]
    return {
        host.name: Guard(host, visitor, lambda _machine: (), lambda _frame: None) for host in hosts
    }


def test_hosts_that_hang_are_waited_for_together(
    frozen: Frozen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "_READY_S", 0.2)
    monkeypatch.setattr(guards, "_LEAVE_S", 0.2)
    opened = guards_by(frozen, 10)
    began = time.monotonic()
    open_all(opened, threading.Event())
    assert 0.2 <= time.monotonic() - began < 1
    began = time.monotonic()
    close_all(opened)
    assert 0.2 <= time.monotonic() - began < 1


def test_a_guard_that_finds_no_thread_says_so_at_once(
    frozen: Frozen, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scarce(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    opened = guards_by(frozen, 2)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", scarce)
        open_all(opened, threading.Event())
    close_all(opened)
    errors = [guard.error for guard in opened.values()]
    assert [error and error.code for error in errors] == ["out-of-resources"] * 2

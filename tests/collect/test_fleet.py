"""Order, bounds and ends of a run over many hosts, with visitors that behave and that do not."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence

import pytest

from commcheck.collect.base import Ask, Frame, Request, Sink, Visitor
from commcheck.collect.fleet import visit_all
from commcheck.errors import HostError, Unreachable
from commcheck.model import Host

FRAME = Frame("once: true", b"", b"", 0, 0.0, 0.0)


class ByFunction:
    """A visitor that does what a function says."""

    def __init__(self, do: Callable[[Host, Sink], None]) -> None:
        self._do = do
        self.stopped = threading.Event()

    def visit(self, host: Host, ask: Ask, sink: Sink) -> None:
        assert ask(FRAME) == []
        self._do(host, sink)

    def stop(self) -> None:
        self.stopped.set()


class Run:
    """Calls ``visit_all`` and keeps what it tells."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.started: list[str] = []
        self.ended: dict[str, HostError | None] = {}
        self.frames: list[tuple[str, Frame]] = []

    def __call__(
        self,
        names: Sequence[str],
        visitor: Visitor,
        *,
        forks: int = 4,
        deadline_s: float | None = None,
        breaker: int = 0,
    ) -> None:
        visit_all(
            [Host(name) for name in names],
            lambda _host: visitor,
            lambda _host: _nothing,
            lambda host: lambda *some: self.frames.extend((host.name, each) for each in some),
            forks=forks,
            started=lambda host: self.started.append(host.name),
            done=self._done,
            stop=self.stop,
            deadline_s=deadline_s,
            breaker=breaker,
        )

    def _done(self, host: Host, error: HostError | None) -> None:
        assert host.name not in self.ended
        self.ended[host.name] = error

    def codes(self) -> dict[str, str]:
        return {name: error.code if error else "" for name, error in self.ended.items()}


def _nothing(_frame: Frame) -> list[Request]:
    return []


NAMES = [f"gpu-{number:02d}" for number in range(12)]


def test_starts_in_order_with_so_many_at_a_time() -> None:
    lock = threading.Lock()
    now = peak = 0

    def do(host: Host, sink: Sink) -> None:
        nonlocal now, peak
        with lock:
            now += 1
            peak = max(peak, now)
        time.sleep(0.03 if host.name.endswith("0") else 0.005)
        sink(FRAME)
        with lock:
            now -= 1

    run = Run()
    run(NAMES, ByFunction(do), forks=3)
    assert run.started == NAMES
    assert sorted(run.ended) == NAMES
    assert set(run.codes().values()) == {""}
    assert sorted(name for name, _ in run.frames) == NAMES
    assert peak == 3


def test_one_slow_host_holds_up_nobody() -> None:
    go = threading.Event()

    def do(host: Host, _sink: Sink) -> None:
        if host.name == NAMES[0]:
            assert go.wait(5)
        elif host.name == NAMES[-1]:
            go.set()

    run = Run()
    run(NAMES, ByFunction(do), forks=2)
    assert list(run.ended)[-1] == NAMES[0]


def test_a_thread_that_dies_before_its_first_line_costs_one_host_its_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As for want of memory; nobody hears of it, and ``Thread.start`` waits for a word of it."""
    bootstrap = threading.Thread._bootstrap  # type: ignore[attr-defined]

    def dies(self: threading.Thread) -> None:
        if self.name != f"visit {NAMES[1]}":
            bootstrap(self)

    monkeypatch.setattr(threading.Thread, "_bootstrap", dies)
    run = Run()
    run(NAMES[:4], ByFunction(lambda _host, _sink: None), forks=2, deadline_s=1.5)
    assert run.codes() == dict.fromkeys(NAMES[:4], "") | {NAMES[1]: "host-deadline"}


def test_errors_and_bugs_cost_one_host_each() -> None:
    def do(host: Host, _sink: Sink) -> None:
        if host.name == "gpu-01":
            raise Unreachable("dns", "no such name")
        if host.name == "gpu-02":
            raise KeyError("rails")

    run = Run()
    run(NAMES[:4], ByFunction(do))
    assert run.codes() == {"gpu-00": "", "gpu-01": "dns", "gpu-02": "bug", "gpu-03": ""}
    bug = run.ended["gpu-02"]
    assert bug is not None
    assert re.search(r"KeyError: 'rails' \(\S+test_fleet.py:\d+\)$", bug.reason)
    assert isinstance(bug.__cause__, KeyError)
    assert bug.__cause__.__traceback__ is not None


def test_a_thread_that_hangs_is_given_up_and_not_listened_to() -> None:
    go = threading.Event()
    late: list[str] = []

    def do(host: Host, sink: Sink) -> None:
        if host.name == "gpu-00":
            go.wait(5)
            try:
                sink(FRAME)
            except HostError as error:
                late.append(error.code)

    run = Run()
    began = time.monotonic()
    run(NAMES[:3], ByFunction(do), forks=1, deadline_s=0.3)
    assert time.monotonic() - began < 2
    assert run.codes() == {"gpu-00": "host-deadline", "gpu-01": "", "gpu-02": ""}
    go.set()
    while not late:
        time.sleep(0.01)
    assert late == ["interrupted"]
    assert run.frames == []


def test_stop_ends_what_runs_and_starts_nothing_more() -> None:
    run = Run()

    def do(host: Host, _sink: Sink) -> None:
        if host.name == "gpu-01":
            run.stop.set()
        assert visitor.stopped.wait(5)
        raise Unreachable("connection-lost", "closed")

    visitor = ByFunction(do)
    began = time.monotonic()
    run(NAMES, visitor, forks=2)
    assert time.monotonic() - began < 2
    assert run.started == NAMES[:2]
    assert sorted(run.ended) == NAMES[:2]


@pytest.mark.slow
def test_stop_waits_five_seconds_at_most() -> None:
    run = Run()
    go = threading.Event()

    def do(_host: Host, _sink: Sink) -> None:
        run.stop.set()
        go.wait(20)

    began = time.monotonic()
    run(NAMES, ByFunction(do), forks=2)
    assert time.monotonic() - began < 6
    assert set(run.codes().values()) == {"interrupted"}
    go.set()


def test_a_failing_callback_leaves_no_visit_behind() -> None:
    run = Run()

    def do(host: Host, _sink: Sink) -> None:
        if host.name != "gpu-00":
            assert visitor.stopped.wait(5)

    def broken(host: Host, error: HostError | None) -> None:
        raise OSError("disk full")

    visitor = ByFunction(do)
    run._done = broken  # type: ignore[method-assign] # the report's disk is full
    with pytest.raises(OSError, match="disk full"):
        run(NAMES[:3], visitor)
    assert visitor.stopped.is_set()


@pytest.mark.parametrize(
    ("bad", "tried"),
    [
        (range(0, 12), 3),
        (range(2, 12), 5),
        ((0, 1, 3, 4, 6, 7), 12),  # never three in a row
    ],
)
def test_breaker_stops_after_so_many_refusals_in_a_row(bad: Sequence[int], tried: int) -> None:
    def do(host: Host, _sink: Sink) -> None:
        if int(host.name.removeprefix("gpu-")) in bad:
            raise Unreachable("auth-refused", "no")

    run = Run()
    run(NAMES, ByFunction(do), forks=1, breaker=3)
    assert run.started == NAMES[:tried]
    assert sorted(run.ended) == NAMES
    assert list(run.codes().values()).count("not-tried") == len(NAMES) - tried

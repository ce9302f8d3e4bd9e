"""Visits many hosts at a time: started in order, each with an end, none holding up the rest."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Final

from commcheck.collect.base import Ask, Frame, Sink, Visitor
from commcheck.collect.failures import unforeseen
from commcheck.collect.lifetime import in_background
from commcheck.errors import HostDeadline, HostError, Interrupted, NotKept, Unreachable
from commcheck.lazy import dataclass
from commcheck.model import Host

STOP_S: Final = 5.0
"""How long visits may take to end after ``stop``; then they are left behind."""

_BREAKS: Final = frozenset({"auth-refused", "host-key-changed"})
"""Failures that, one after another, mean a wrong key or a locked account: not to be hammered on."""

_LOOK_S: Final = 0.1  # how often ``stop`` is looked at


class _Soon(threading.Event):
    """What ``Thread.start`` waits for, which is the thread's first line.

    For want of memory a thread may die before it, and ``start`` would wait for ever. Of such a
    visit nothing more is heard: its deadline gives it up.
    """

    def wait(self, timeout: float | None = 1.0) -> bool:
        return super().wait(timeout)


@dataclass(eq=False, slots=True)
class _Trip:
    """One host being visited. Once ``over``, its thread is not listened to any more."""

    host: Host
    visitor: Visitor | None = None
    began: float = field(default_factory=time.monotonic)
    over: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def guard(self, sink: Sink) -> Sink:
        """The sink, shut once the host was reported as done."""

        def take(*frames: Frame) -> None:
            with self.lock:
                if self.over:
                    raise Interrupted("interrupted", "this host was given up")
                sink(*frames)

        return take


@dataclass(slots=True)
class _Breaker:
    """Trips after ``limit`` refusals in a row; 0 never."""

    limit: int
    row: int = 0

    def saw(self, error: HostError | None) -> None:
        if self.limit == 0 or self.row >= self.limit:
            return
        self.row = self.row + 1 if error is not None and error.code in _BREAKS else 0

    @property
    def tripped(self) -> bool:
        return 0 < self.limit <= self.row


def visit_all(
    hosts: Sequence[Host],
    visitor_for: Callable[[Host], Visitor],
    ask_for: Callable[[Host], Ask],
    sink_for: Callable[[Host], Sink],
    *,
    forks: int,
    started: Callable[[Host], None],
    done: Callable[[Host, HostError | None], None],
    stop: threading.Event,
    deadline_s: float | None = None,
    breaker: int = 0,
) -> None:
    """Visit every host, at most ``forks`` at a time, started in the order given.

    ``started`` and ``done`` are called from this thread, the three ``*_for`` and the sinks from
    the host's. ``done`` comes once for every host started, with the error it ended with; a fault
    of our own is ``HostError("bug")`` with the exception as its ``__cause__``.

    Where what a host says cannot be kept (``NotKept``), all visits are ended and that is raised.

    ``deadline_s``: a visit that takes longer, whatever its visitor promised, is given up: its
    thread is left behind, its host done. ``breaker``: after so many hosts in a row that refused
    our key or showed a changed one, no more are started; those are ``done`` with code
    "not-tried". Once ``stop`` is set nothing is started, running visits are ended within 5 s, and
    hosts never started are not reported.
    """
    _Fleet(visitor_for, ask_for, sink_for, started, done, stop, deadline_s).run(
        hosts, forks, _Breaker(breaker)
    )


class _Fleet:
    def __init__(
        self,
        visitor_for: Callable[[Host], Visitor],
        ask_for: Callable[[Host], Ask],
        sink_for: Callable[[Host], Sink],
        started: Callable[[Host], None],
        done: Callable[[Host, HostError | None], None],
        stop: threading.Event,
        deadline_s: float | None,
    ) -> None:
        self._visitor_for = visitor_for
        self._ask_for = ask_for
        self._sink_for = sink_for
        self._started = started
        self._done = done
        self._stop = stop
        self._deadline_s = deadline_s
        self._ends: queue.SimpleQueue[tuple[_Trip, HostError | NotKept | None]] = (
            queue.SimpleQueue()
        )
        self._out: dict[_Trip, None] = {}  # in order of start
        self._ending = False

    def run(self, hosts: Sequence[Host], forks: int, breaker: _Breaker) -> None:
        waiting = list(reversed(hosts))
        try:
            while (waiting or self._out) and not self._stop.is_set():
                while waiting and len(self._out) < forks and not breaker.tripped:
                    if not self._start(waiting[-1]):
                        break
                    waiting.pop()
                self._collect(breaker)
                self._give_up_the_late(breaker)
                if breaker.tripped:
                    while waiting:
                        self._done(waiting.pop(), _not_tried(breaker))
        finally:
            if self._out:
                self._end_all(breaker)

    def _start(self, host: Host) -> bool:
        """Begin a visit. False where that has to wait until others have ended."""
        trip = _Trip(host)
        thread = threading.Thread(
            target=self._visit, args=(trip,), name=f"visit {host.name}", daemon=True
        )
        thread._started = _Soon()  # type: ignore[attr-defined]
        try:
            thread.start()
        except RuntimeError as error:  # no more threads are to be had
            if self._out:
                return False
            self._started(host)
            self._done(host, unforeseen(error))
            return True
        self._out[trip] = None
        self._started(host)
        return True

    def _visit(self, trip: _Trip) -> None:
        """One host, in its own thread."""
        error: HostError | NotKept | None = None
        try:
            trip.visitor = self._visitor_for(trip.host)
            if self._stop.is_set() or self._ending:  # too late to be told to stop
                raise Interrupted("interrupted", "the run was stopped before this host was visited")
            sink = trip.guard(self._sink_for(trip.host))
            trip.visitor.visit(trip.host, self._ask_for(trip.host), sink)
        except (HostError, NotKept) as problem:
            error = problem
        except Exception as problem:  # noqa: BLE001 - a bug costs one host, not the run
            error = unforeseen(problem)
        self._ends.put((trip, error))

    def _collect(self, breaker: _Breaker) -> None:
        """Report what has ended; wait a moment for the first."""
        wait_s = _LOOK_S
        while True:
            try:
                trip, error = self._ends.get(timeout=wait_s)
            except queue.Empty:
                return
            wait_s = 0.0
            self._report(trip, error, breaker)

    def _report(self, trip: _Trip, error: HostError | NotKept | None, breaker: _Breaker) -> None:
        with trip.lock:
            if trip.over:  # given up before
                return
            trip.over = True
        del self._out[trip]
        if isinstance(error, NotKept):
            raise error
        breaker.saw(error)
        self._done(trip.host, error)

    def _give_up_the_late(self, breaker: _Breaker) -> None:
        if self._deadline_s is None:
            return
        now = time.monotonic()
        for trip in [each for each in self._out if now - each.began > self._deadline_s]:
            error = HostDeadline(
                "host-deadline",
                f"it did not end within {self._deadline_s:g} s, and could not be interrupted",
                "see what hangs on the way to it: name service, jump host, proxy command",
            )
            self._report(trip, error, breaker)

    def _end_all(self, breaker: _Breaker) -> None:
        self._ending = True
        for visitor in {id(each.visitor): each.visitor for each in self._out}.values():
            if visitor is not None:
                # Nothing that hangs in there may keep the others from being stopped.
                in_background(visitor.stop, "stop")
        ends = time.monotonic() + STOP_S
        while self._out and time.monotonic() < ends:
            with contextlib.suppress(NotKept):  # every other one fails likewise
                self._collect(breaker)
        for trip in list(self._out):
            with contextlib.suppress(NotKept):
                self._report(trip, _left_behind(), breaker)


def _left_behind() -> HostError:
    return Interrupted(
        "interrupted",
        f"the run was stopped, and the session did not end within {STOP_S:g} s",
        "what runs there ends by itself once the connection is gone",
    )


def _not_tried(breaker: _Breaker) -> HostError:
    return Unreachable(
        "not-tried",
        f"not contacted: {breaker.limit} hosts in a row refused the login or showed another host "
        "key than the known one",
        "mend the key or the account first; the errors of the hosts before say what was refused",
    )

"""Every visit ends: what it opened is closed when it is over, out of time, or stopped."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import threading
from collections.abc import Callable, Iterator

from commcheck.errors import HostDeadline, HostError, Interrupted

GRACE_S = 1.0
"""How long past its deadline a visit may take to end itself in order, before it is cut."""


class Visit:
    """What one visit holds open, and whether it still may. Thread-safe.

    ``end`` may come from any thread and closes everything at once; the visiting thread then gets
    errors from whatever it was waiting for, and ``verdict`` says what they mean.
    """

    def __init__(self, name: str, limit_s: float, clock: Callable[[], float]) -> None:
        self.name = name
        self.limit_s = limit_s
        self.deadline = clock() + limit_s  # on the same clock
        self._clock = clock
        self._lock = threading.Lock()
        self._held: list[Callable[[], None]] = []
        self._over = threading.Event()
        self._why = ""

    def hold(self, close: Callable[[], None]) -> None:
        """Close this at the end, last held first. Raises where the end has already come."""
        with self._lock:
            if not self._over.is_set():
                self._held.append(close)
                return
        _close(close)
        raise self.verdict()

    def drop(self) -> None:
        """Close what is held now, and go on: one attempt is over."""
        with self._lock:
            held, self._held = self._held, []
        for close in reversed(held):
            _close(close)

    def end(self, why: str) -> None:
        """Close everything. ``why``: "done", "deadline" or "stop"; the first one counts."""
        with self._lock:
            self._why = self._why or why
            self._over.set()
        self.drop()

    def pause(self, seconds: float) -> None:
        """Wait, but not past the end. Raises where the end comes."""
        if self._over.wait(min(seconds, max(0.0, self.deadline - self._clock()))):
            raise self.verdict()
        self.left_s(seconds)

    def left_s(self, at_most_s: float) -> float:
        """The seconds that may still be spent. Raises where there are none."""
        left = self.deadline - self._clock()
        if left <= 0 or self._over.is_set():
            raise self.verdict()
        return min(at_most_s, left)

    @property
    def was_cut(self) -> bool:
        """Whether errors seen now only mean that the visit was ended, or ran out of time."""
        return self._why in ("deadline", "stop") or self._clock() >= self.deadline

    def verdict(self, doing: str = "") -> HostError:
        """Why it was cut."""
        if self._why == "stop":
            return Interrupted("interrupted", "the run was stopped before this host was done")
        waiting = f" while waiting for {doing}" if doing else ""
        return HostDeadline(
            "host-deadline",
            f"its {self.limit_s:g} s were used up{waiting}",
            "see what hangs there: log in by hand; a slow but healthy host needs a longer "
            "--host-deadline",
        )


def _close(close: Callable[[], None]) -> None:
    # A connection that is being torn down from two sides fails in many ways, none of interest.
    with contextlib.suppress(Exception):
        close()


class Supervisor:
    """One thread that ends visits past their deadline, wherever their own thread hangs."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._heap: list[tuple[float, int, Visit]] = []
        self._order = itertools.count()
        self._watched: set[Visit] = set()
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def watching(self, visit: Visit) -> Iterator[None]:
        """Watch a visit inside the block."""
        with self._changed:
            if self._thread is None:
                thread = threading.Thread(
                    target=self._watch, name="commcheck-deadlines", daemon=True
                )
                thread.start()  # where no thread is to be had, the next visit tries again
                self._thread = thread
            self._watched.add(visit)
            heapq.heappush(self._heap, (visit.deadline + GRACE_S, next(self._order), visit))
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._watched.discard(visit)
                self._changed.notify()

    def stop(self) -> None:
        """End every visit that is watched. Does not wait for them."""
        with self._changed:
            visits = list(self._watched)
        for visit in visits:
            _end_in_background(visit, "stop")

    def _watch(self) -> None:
        with self._changed:
            while True:
                while self._heap and self._heap[0][2] not in self._watched:
                    heapq.heappop(self._heap)
                if not self._heap:
                    # Leave; the next visit starts a new thread.
                    self._thread = None
                    return
                at, _, visit = self._heap[0]
                left = at - self._clock()
                if left > 0:
                    self._changed.wait(left)
                    continue
                heapq.heappop(self._heap)
                _end_in_background(visit, "deadline")


def _end_in_background(visit: Visit, why: str) -> None:
    """Closing through a frozen jump host can itself hang: nobody else must wait for it."""
    in_background(lambda: visit.end(why), f"end {visit.name}")


def in_background(call: Callable[[], None], name: str) -> threading.Thread | None:
    """Call it in a thread of its own; here and now where no thread is to be had."""
    thread = threading.Thread(target=call, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        call()
        return None
    return thread

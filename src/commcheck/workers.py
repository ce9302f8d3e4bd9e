"""Several processes for one run: each visits and judges a share of the hosts.

The parent alone writes the run folder, shows progress and renders. A worker tells it through a
pipe what it comes to know, and ends when the pipe from the parent does: however the parent dies,
its workers hang up on their hosts and leave.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, Final, Literal, Self

from commcheck.collect.fleet import STOP_S
from commcheck.errors import HostError
from commcheck.lazy import dataclass
from commcheck.model import Host
from commcheck.stop import EXIT_CODES

_LOOK_S: Final = 0.1
_SLACK_S: Final = 10.0
"""How much later than a host's own end, or the run's, a worker is taken for hung and killed."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a worker tells: a session begins, lines for its frames, a note, its end."""

    kind: Literal["started", "lines", "note", "judged"]
    host: str
    what: Any = None


HOSTS_EACH: Final = 150
"""Hosts from which a process more saves more than it costs: it starts in the time of some twenty,
and holds what it has loaded once more."""


def workers_for(hosts: int, forks: int, wanted: int) -> int:
    """How many processes: those ``wanted``, or by the hosts and the cores where that is 0.

    Each has at least one host at a time, so that there are no more than ``forks``.
    """
    fit = wanted or min((os.cpu_count() or 1) // 2, hosts // HOSTS_EACH)
    return max(1, min(fit, forks))


Post = Callable[[Told], None]
"""Tells the parent; from any thread of the worker."""

Work = Callable[[Sequence[Host], Post, threading.Event], None]
"""Visits hosts, in a worker, until the event is set. Posts "judged" for every one that ended."""


@dataclass(eq=False, slots=True)
class _Worker:
    """One process as the parent sees it."""

    process: ForkProcess
    told: Connection  # what it tells
    lifeline: Connection  # closed: it ends
    hosts: dict[str, Host]  # not judged yet
    begun: dict[str, float] = field(default_factory=dict)

    def note(self, told: Told) -> None:
        if told.kind == "started":
            self.begun[told.host] = time.monotonic()
        elif told.kind == "judged":
            self.begun.pop(told.host, None)
            del self.hosts[told.host]

    def is_hung(self, limit_s: float) -> bool:
        now = time.monotonic()
        return any(now - began > limit_s for began in self.begun.values())


class Pool:
    """``count`` processes that work from the start of the block and are gone after it.

    Enter it before the process has threads: it forks. A ``count`` of one makes no process.
    """

    def __init__(self, count: int, hosts: Sequence[Host], work: Work) -> None:
        self._shares = [hosts[n::count] for n in range(min(count, len(hosts)))] if count > 1 else []
        self._work = work
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        try:
            for share in self._shares:
                self._workers.append(_fork(share, self._work, self._workers))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end(_ignore)

    def _end(self, hear: Callable[[Told], None]) -> None:
        workers, self._workers = self._workers, []
        _end(workers, hear)

    def listen(
        self,
        hear: Callable[[Told], None],
        lost: Callable[[Host, HostError], None],
        stop: threading.Event,
        deadline_s: float,
    ) -> None:
        """Pass on what workers tell, in this thread, until all have ended or ``stop`` is set.

        ``lost``: for every host of a worker that died, or sat longer than ``deadline_s`` on one.
        After ``stop`` they are told to end, and heard until they have.
        """
        try:
            _listen(self._workers, hear, lost, stop, deadline_s + _SLACK_S)
        finally:
            self._end(hear)


def _ignore(_told: Told) -> None:
    """Nobody listens any more."""


def _fork(hosts: Sequence[Host], work: Work, older: Sequence[_Worker]) -> _Worker:
    context = multiprocessing.get_context("fork")
    told, telling = context.Pipe(duplex=False)
    lifeline_out, lifeline = context.Pipe(duplex=False)
    # A pipe ends only when nobody holds its other end.
    not_ours = [told, lifeline, *(end for one in older for end in (one.told, one.lifeline))]
    process = context.Process(
        target=_work, args=(hosts, work, telling, lifeline_out, not_ours), daemon=True
    )
    # The operator's Ctrl-C reaches the whole process group, and only the parent may act on it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, EXIT_CODES)
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    telling.close()
    lifeline_out.close()
    return _Worker(process, told, lifeline, {host.name: host for host in hosts})


# --- in a worker --------------------------------------------------------------------------------


def _work(
    hosts: Sequence[Host],
    work: Work,
    telling: Connection,
    lifeline: Connection,
    not_ours: Sequence[Connection],
) -> None:
    for number in EXIT_CODES:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, EXIT_CODES)
    for end in not_ours:
        end.close()
    stop, lock = threading.Event(), threading.Lock()

    def watch() -> None:
        with contextlib.suppress(EOFError, OSError):
            lifeline.recv_bytes()
        stop.set()

    def post(told: Told) -> None:
        try:
            with lock:
                telling.send(told)
        except OSError:
            stop.set()  # the parent is gone

    threading.Thread(target=watch, name="lifeline", daemon=True).start()
    work(hosts, post, stop)
    # Threads that were left behind, stuck in a name service, say, must not keep the process.
    with lock:
        telling.close()
        os._exit(0)


# --- in the parent ------------------------------------------------------------------------------


def _listen(
    workers: Sequence[_Worker],
    hear: Callable[[Told], None],
    lost: Callable[[Host, HostError], None],
    stop: threading.Event,
    limit_s: float,
) -> None:
    running = {worker.told: worker for worker in workers}
    while running and not stop.is_set():
        for end in wait(list(running), _LOOK_S):
            worker = running[end]  # type: ignore[index] # typeshed: it is one of those given
            if not _hear_one(worker, hear):
                del running[worker.told]
                for host in list(worker.hosts.values()):
                    lost(host, _lost(worker))
                    worker.hosts.pop(host.name)
        for worker in running.values():
            if worker.is_hung(limit_s):
                worker.process.kill()  # its pipe ends now


def _hear_one(worker: _Worker, hear: Callable[[Told], None]) -> bool:
    """Take what a worker tells next. False: it tells nothing more."""
    try:
        told: Told = worker.told.recv()
    except (EOFError, OSError):
        return False
    worker.note(told)
    hear(told)
    return True


def _end(workers: Sequence[_Worker], hear: Callable[[Told], None]) -> None:
    """Hang up on all, hear their last words, kill what does not leave."""
    for worker in workers:
        worker.lifeline.close()
    ends = time.monotonic() + STOP_S + _SLACK_S
    running = {worker.told: worker for worker in workers}
    try:
        while running and (left := ends - time.monotonic()) > 0:
            for end in wait(list(running), left):
                if not _hear_one(running[end], hear):  # type: ignore[index] # as above
                    del running[end]  # type: ignore[arg-type] # as above
    finally:  # also where what they tell can be kept no longer
        for worker in workers:
            worker.process.join(0.5)
            if worker.process.is_alive():
                worker.process.kill()
            worker.process.join()
            worker.told.close()


def _lost(worker: _Worker) -> HostError:
    worker.process.join(1)
    return HostError(
        "worker-lost",
        f"the process that had this host ended too early (exit code {worker.process.exitcode})",
        "out of memory? see dmesg; fewer --workers need less",
    )

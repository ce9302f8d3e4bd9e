"""The hosts of a run shared out over an executor: workers of dask, or whatever a site has.

A worker gets a slice of the hosts, visits them over SSH and hands back what they answered. The
parent alone judges, writes, and carries out what loads the fabric; so a slice that is visited
twice, because its worker was killed, was only looked at twice.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from commcheck import __version__
from commcheck.check import FLEET, AnyCheck
from commcheck.collect.base import Ask, Frame, Frames, Request
from commcheck.collect.fleet import visit_all
from commcheck.discover import FoundCheck, discover
from commcheck.errors import HostError
from commcheck.lazy import dataclass
from commcheck.model import Host
from commcheck.plan import Asked, HostPlan, requests
from commcheck.plays import Entry, Gate, Play
from commcheck.subjects import machine_of

MOST_HOSTS: Final = 25
"""Of a slice: what is lost, and asked again, with a worker."""

_AT_A_TIME: Final = 8
"""Slices that ``--forks`` should be enough for: more workers than these need more forks."""

_LOOK_S: Final = 0.2
_SLACK_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How workers reach hosts, and what must be the same on them as here."""

    run_id: str
    ssh: Mapping[str, Any]  # fields of SshSettings
    deadline_s: float  # of a host
    cwd: Path
    check_folders: tuple[Path, ...]
    digests: Mapping[str, str]  # of the checks' files, by id
    version: str = __version__

    @classmethod
    def of(
        cls,
        run_id: str,
        ssh: Mapping[str, Any],
        found: Sequence[FoundCheck],
        check_folders: Sequence[Path],
        deadline_s: float,
    ) -> Way:
        """Files and folders are looked for on the workers at the same paths."""
        cwd = Path.cwd()
        return cls(
            run_id=run_id,
            ssh={name: _absolute(value, cwd) for name, value in ssh.items()},
            deadline_s=deadline_s,
            cwd=cwd,
            check_folders=tuple(cwd / folder for folder in check_folders),
            digests=_digests(found),
        )


def _absolute(value: Any, cwd: Path) -> Any:
    if isinstance(value, tuple):
        return tuple(_absolute(each, cwd) for each in value)
    return cwd / value.expanduser() if isinstance(value, Path) else value


@dataclass(frozen=True, slots=True)
class _Word:
    """``Asked``, with the check by its name: its functions are no words to be sent."""

    check: str
    gate: Gate
    entry: Entry | None
    not_permitted: str
    play: Play | None


Slice = Sequence[tuple[Host, tuple[_Word, ...]]]


@dataclass(frozen=True, slots=True)
class Brought:
    """What a worker brings of one host: frames as they came, and why there are no more."""

    host: str
    frames: tuple[Frame, ...]
    error: HostError | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a worker brings of a slice."""

    hosts: tuple[Brought, ...]
    notes: tuple[str, ...]


# --- on a worker --------------------------------------------------------------------------------


def visit_slice(way: Way, hosts: Slice) -> Answer:
    """Visit the hosts, all at a time. Raises ``HostError`` where a worker is unlike the parent."""
    from commcheck.collect.ssh import SshSettings, SshVisitor

    checks = _checks_here(way)
    frames = {host.name: Frames() for host, _ in hosts}
    errors: dict[str, HostError | None] = {}
    notes: list[str] = []
    asks = {host.name: _ask(host, [_asked(word, checks) for word in said]) for host, said in hosts}

    def done(host: Host, error: HostError | None) -> None:
        errors[host.name] = error

    visitor = SshVisitor(SshSettings(run_id=way.run_id, note=notes.append, **way.ssh))
    try:
        visit_all(
            [host for host, _ in hosts],
            lambda _host: visitor,
            lambda host: asks[host.name],
            lambda host: frames[host.name],
            forks=len(hosts),
            started=lambda _host: None,
            done=done,
            stop=threading.Event(),
            deadline_s=way.deadline_s,
        )
    finally:
        visitor.close()
    brought = (Brought(name, tuple(frames[name]), errors[name]) for name in errors)
    return Answer(tuple(brought), tuple(notes))


def _ask(host: Host, asked: Sequence[Asked]) -> Ask:
    def ask(frame: Frame) -> tuple[Request, ...]:
        found = machine_of(host, frame)
        return tuple(each for each in requests(host, found, asked) if each.at != FLEET)

    return ask


def _asked(word: _Word, checks: Mapping[str, AnyCheck]) -> Asked:
    return Asked(checks[word.check], word.gate, word.entry, word.not_permitted, word.play)


def _checks_here(way: Way) -> Mapping[str, AnyCheck]:
    found = _found_here(way.check_folders, way.cwd)
    here = _digests(found)
    other = sorted(name for name, digest in way.digests.items() if here.get(name) != digest)
    if other or way.version != __version__:
        what = f"check {other[0]}" if other else f"commcheck, {__version__}"
        raise HostError(
            "worker-differs",
            f"a worker has another {what} than where the run began",
            "install the same commcheck, and the same folders of checks, on every worker",
        )
    return {one.id: one.check for one in found}


@lru_cache(maxsize=1)
def _found_here(folders: tuple[Path, ...], cwd: Path) -> tuple[FoundCheck, ...]:
    return discover(folders, cwd=cwd)


def _digests(found: Sequence[FoundCheck]) -> dict[str, str]:
    return {one.id: one.digest for one in found}


# --- in the parent ------------------------------------------------------------------------------


@dataclass(slots=True)
class Crew:
    """An executor, and the way for its workers. ``name``: as the operator wrote it."""

    name: str
    executor: Executor
    way: Way
    _out: dict[Future[Answer], Sequence[HostPlan]] = field(default_factory=dict)

    def visit(
        self,
        plans: Sequence[HostPlan],
        *,
        forks: int,
        brought: Callable[[Host, Brought], None],
        lost: Callable[[Host, HostError], None],
        note: Callable[[str], None],
        stop: threading.Event,
    ) -> None:
        """Have every host visited, at most ``forks`` at a time, and hand on what comes back.

        Everything is called from this thread. ``lost``: for every host of which a worker brought
        nothing. After ``stop`` nothing is begun, and what is out ends by itself.
        """
        size = max(1, min(MOST_HOSTS, forks // _AT_A_TIME, -(-len(plans) // _AT_A_TIME)))
        waiting = deque(plans[n : n + size] for n in range(0, len(plans), size))
        heard = time.monotonic()
        while (waiting or self._out) and not stop.is_set():
            while waiting and (len(self._out) + 1) * size <= max(forks, size):
                self._send(waiting.popleft(), lost)
            ended = wait(self._out, _LOOK_S, FIRST_COMPLETED).done
            for future in ended:
                self._take(future, self._out.pop(future), brought, lost, note)
                heard = time.monotonic()
            if time.monotonic() - heard > self._patience_s:
                for plan in (each for part in (*self._out.values(), *waiting) for each in part):
                    lost(plan.host, self._silent())
                break
        for future in self._out:
            future.cancel()
        self._out.clear()

    @property
    def _patience_s(self) -> float:
        """A slice may be visited twice, where the first worker dies at its end."""
        return 2 * self.way.deadline_s + _SLACK_S

    def _send(self, plans: Sequence[HostPlan], lost: Callable[[Host, HostError], None]) -> None:
        hosts = tuple((plan.host, tuple(map(_word, plan.asked))) for plan in plans)
        try:
            self._out[self.executor.submit(visit_slice, self.way, hosts)] = plans
        except Exception as error:  # noqa: BLE001 - one that is broken takes nothing more
            for plan in plans:
                lost(plan.host, _lost(error))

    def _take(
        self,
        future: Future[Answer],
        plans: Sequence[HostPlan],
        brought: Callable[[Host, Brought], None],
        lost: Callable[[Host, HostError], None],
        note: Callable[[str], None],
    ) -> None:
        try:
            answer = future.result()
        except Exception as error:  # noqa: BLE001 - whatever a worker or the executor fails with
            for plan in plans:
                lost(plan.host, _lost(error))
            return
        for text in answer.notes:
            note(text)
        by_name = {each.host: each for each in answer.hosts}
        for plan in plans:
            if plan.host.name in by_name:
                brought(plan.host, by_name[plan.host.name])
            else:
                lost(plan.host, HostError("worker-lost", "a worker left this host out"))

    def _silent(self) -> HostError:
        return HostError(
            "worker-lost",
            f"no worker of {self.name} has brought anything for {self._patience_s:.0f} s",
            "look whether its workers run",
        )


def _word(asked: Asked) -> _Word:
    return _Word(asked.check.id, asked.gate, asked.entry, asked.not_permitted, asked.play)


def _lost(error: Exception) -> HostError:
    if isinstance(error, HostError):
        return error
    what = f"{type(error).__name__}: {error}".splitlines()[0][:300]
    return HostError("worker-lost", f"the worker that had this host failed: {what}")

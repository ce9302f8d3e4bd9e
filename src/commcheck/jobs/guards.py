"""Guards: on every host that takes part, a session that stays open while runs go on.

It took the host's lock, proved the accelerators idle, read the counters, and waits. When it ends,
for whatever reason, its host is swept of what carries the mark of the run's jobs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from commcheck import subjects
from commcheck.collect.base import SUBJECTS, Frame, Request, State, Visitor
from commcheck.collect.errand import errand
from commcheck.collect.failures import unforeseen
from commcheck.command import Command
from commcheck.errors import HostDeadline, HostError, Unjudgeable
from commcheck.jobs import ready, said
from commcheck.jobs.job import Job, Member
from commcheck.jobs.office import Office
from commcheck.lazy import dataclass
from commcheck.model import PLATFORMS, Host, Machine, Verdict
from commcheck.report.cleaning import decode

_READY_S: Final = 120.0
"""How long hosts may take to be proven idle."""

_LEAVE_S: Final = 5.0
"""How long they may take to be swept."""

_LOOK_S: Final = 0.1  # how often it is looked whether the run was stopped

AFTER_S: Final = 60.0
"""A session that only sweeps and reads may take this long."""

AT_A_TIME: Final = 64
"""Sessions that are opened at once."""


@dataclass(slots=True)
class Guard:
    """One host whose session stays open while runs go on."""

    host: Host
    visitor: Visitor
    asked: Callable[[Machine], tuple[Request, ...]]
    keep: Callable[[Frame], None]
    frames: dict[str, Frame] = field(default_factory=dict)
    machine: Machine | None = None
    error: HostError | None = None
    last: str = ""  # key of the last answer to wait for
    ready: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def open(self) -> None:
        """Begin the session, in a thread of its own."""
        thread = threading.Thread(target=self._visit, name=f"guard {self.host.name}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # no more threads are to be had
            self.error = unforeseen(error)
            self.ready.set()
        else:
            self.thread = thread

    def close(self) -> None:
        """End the session: the host lets go of the lock and is swept."""
        self.visitor.stop()

    def _visit(self) -> None:
        try:
            self.visitor.visit(self.host, self._ask, self._sink)
        except HostError as error:
            self.error = error
        except Exception as error:  # noqa: BLE001 - a bug costs one host, not the run
            self.error = unforeseen(error)
        finally:
            self.ready.set()

    def _ask(self, frame: Frame) -> Sequence[Request]:
        self.machine = subjects.machine_of(self.host, frame)
        requests = self.asked(self.machine)
        self.last = requests[-2].key
        return requests

    def _sink(self, *frames: Frame) -> None:
        for frame in frames:
            if frame.key == SUBJECTS or frame.state is State.LOST:
                continue  # what it waits in ends when it is told to
            self.frames[frame.key] = frame
            self.keep(frame)
            if frame.key == self.last:
                self.ready.set()


def guards_of(
    name: str, job: Job, hosts: Sequence[Host], limits: Any, office: Office
) -> dict[str, Guard]:
    """One for each host that is to be loaded."""

    def asked_of(host: Host) -> Callable[[Machine], tuple[Request, ...]]:
        def asked(machine: Machine) -> tuple[Request, ...]:
            folder = office.site_of(host, machine.platform).programs.value or ""
            programs = job.programs(machine.platform, limits)
            return ready.before(f"before {name}", machine, folder, programs, asked_by(job, machine))

        return asked

    return {host.name: _guard(host, asked_of(host), office) for host in hosts}


def asked_by(job: Job, machine: Machine) -> tuple[Command, ...]:
    """The job's own questions to a machine; none where it lacks what they ask about."""
    try:
        return tuple(command.on(machine) for command in job.asks)
    except Unjudgeable:
        return ()


def head_guards(
    name: str, job: Job, hosts: Sequence[Host], limits: Any, office: Office
) -> dict[str, Guard]:
    """One for each host that only launches."""
    guards = {}
    for host in hosts:
        site = office.site_of(host, "")
        head = office.host_named(site.head.value or host.name)
        if head is None or head.name in {each.name for each in hosts}:
            continue
        programs = [each for kind in PLATFORMS for each in job.programs(kind, limits)]
        requests = ready.at_head(f"before {name}", site.programs.value or "", programs)
        guards[head.name] = _guard(head, _always(requests), office)
    return guards


def _always(requests: tuple[Request, ...]) -> Callable[[Machine], tuple[Request, ...]]:
    return lambda _machine: requests


def _guard(host: Host, asked: Callable[[Machine], tuple[Request, ...]], office: Office) -> Guard:
    return Guard(
        host=host,
        visitor=errand(office.visitor_for(host), "", ready.HOLD_S + AFTER_S),
        asked=asked,
        keep=lambda frame: office.keep(host.name, frame),
    )


def open_all(guards: Mapping[str, Guard], stop: threading.Event) -> None:
    """Open all sessions, and wait until every host is proven idle or has failed to be."""
    waiting = list(guards.values())
    while waiting and not stop.is_set():
        now, waiting = waiting[:AT_A_TIME], waiting[AT_A_TIME:]
        for guard in now:
            guard.open()
        ends = time.monotonic() + _READY_S
        for guard in now:
            while not (guard.ready.is_set() or stop.is_set()) and time.monotonic() < ends:
                guard.ready.wait(_LOOK_S)


def close_all(guards: Mapping[str, Guard]) -> None:
    """End all sessions, and wait a moment for the sweeps on their hosts."""
    for guard in guards.values():
        guard.close()
    ends = time.monotonic() + _LEAVE_S
    for guard in guards.values():
        if guard.thread is not None:
            guard.thread.join(max(0.0, ends - time.monotonic()))


def members_of(
    name: str, job: Job, guards: Mapping[str, Guard], office: Office, *, must_be_free: bool = True
) -> tuple[dict[str, Member], dict[str, Verdict]]:
    """The hosts that are ready, in order, and why the others take no part."""
    members: dict[str, Member] = {}
    out: dict[str, Verdict] = {}
    for host, guard in guards.items():
        machine = guard.machine
        if machine is None or not guard.ready.is_set() or guard.last not in guard.frames:
            out[host] = _unready(guard)
            continue
        at = f"before {name}"
        why_not = ready.why_not(at, machine, guard.frames, decode) if must_be_free else None
        if why_not is not None:
            out[host] = why_not
            continue
        has = ready.found(at, guard.frames, decode)
        site = office.site_of(guard.host, machine.platform)
        members[host] = Member(
            host=guard.host,
            machine=machine,
            site=site,
            address=site.address.value or office.address_of(guard.host),
            launchers=has.launchers,
            programs=has.programs,
            told=ready.told(at, asked_by(job, machine), guard.frames, decode),
        )
    return members, out


def _unready(guard: Guard) -> Verdict:
    why = guard.error or HostDeadline("host-deadline", "the host was not ready in time")
    told = f"nothing was launched on it: {why.code}: {why.reason}"
    return said.error(type(why).__name__, told)

"""Carries out the plays that load: guards on every host, runs round by round, results.

On each host that takes part a *guard* session stays open: it took the host's lock, proved the
accelerators idle, read the counters, and waits. Runs are launched beside it, in sessions of their
own. When all is done, or commcheck is gone, every guard's host is swept of what carries the mark
of the run's jobs. Everything that is learnt from hosts goes through frames, so that a run that is
judged again, or goes on, does all of this from what is stored.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from commcheck import subjects
from commcheck.check import AnyCheck, Output, Span
from commcheck.collect.base import SUBJECTS, Frame, Request, State, Visitor
from commcheck.collect.errand import errand
from commcheck.collect.fleet import visit_all
from commcheck.counters import Growth, growth
from commcheck.errors import HostError, Unjudgeable
from commcheck.jobs import ready
from commcheck.jobs.job import Answered, Job, Member, Part, Ran, Search
from commcheck.jobs.locate import Outcome, Run, locate
from commcheck.jobs.pairing import Round
from commcheck.jobs.site import Site
from commcheck.judge import head_of
from commcheck.model import PLATFORMS, Evidence, Host, Kind, Machine, Status, Verdict
from commcheck.report.cleaning import decode

_READY_S: Final = 120.0
"""How long a host may take to be proven idle."""

_START_S: Final = 30.0
"""A launch's session may take this much longer than its command: connecting, clearing up."""

_AFTER_S: Final = 60.0
_MOST_ROUNDS: Final = 4096
_GUARDS: Final = 64  # that are opened at a time

_ANSWERED: Final = (State.DONE, State.TIMED_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Office:
    """What a stage needs of the run it belongs to.

    ``visitor_for``: the way to a host. ``keep``: every frame, at once, from any thread.
    ``stored``: frames of a host that this very run took before it was cut off, or None.
    ``site_of``: what the inventory says of a host. ``host_named``: one of the inventory.
    """

    visitor_for: Callable[[Host], Visitor]
    keep: Callable[[str, Frame], None]
    stored: Callable[[str], Iterable[Frame]] | None
    site_of: Callable[[Host, str], Site]
    address_of: Callable[[Host], str]
    note: Callable[[str], None]
    stop: threading.Event
    host_named: Callable[[str], Host | None]
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))


@dataclass(slots=True)
class _Guard:
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
        self.thread = threading.Thread(
            target=self._visit, name=f"guard {self.host.name}", daemon=True
        )
        self.thread.start()

    def close(self) -> None:
        """End the session: the host lets go of the lock and is swept."""
        self.visitor.stop()

    def _visit(self) -> None:
        try:
            self.visitor.visit(self.host, self._ask, self._sink)
        except HostError as error:
            self.error = error
        except Exception as error:  # noqa: BLE001 - a bug costs one host, not the run
            self.error = HostError("bug", f"commcheck itself failed: {error}"[:300])
        finally:
            self.ready.set()

    def _ask(self, frame: Frame) -> Sequence[Request]:
        try:
            self.machine = subjects.machine(self.host, decode(frame.stdout))
        except Unjudgeable as error:
            raise HostError("no-facts", error.reason, error.remedy) from error
        requests = self.asked(self.machine)
        self.last = requests[-2].key
        return requests

    def _sink(self, frame: Frame) -> None:
        if frame.key == SUBJECTS or frame.state is State.LOST:
            return  # what it waits in ends when it is told to
        self.frames[frame.key] = frame
        self.keep(frame)
        if frame.key == self.last:
            self.ready.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What came of one batch: the search, hosts that took no part and why, whether it was cut."""

    search: Search | None
    out: Mapping[str, Verdict]


def carry_out(
    check: AnyCheck,
    job: Job,
    hosts: Sequence[Host],
    limits: Any,
    office: Office,
    *,
    retries: int = 0,
    label: str = "",
) -> Batch:
    """Load ``hosts`` as the job plans it. ``label`` tells batches of one check apart in frames.

    ``retries``: how often a run that proved nothing is launched again.
    """
    name = f"{check.id}{label}"
    guards = _guards(name, job, hosts, limits, office)
    heads = _head_guards(name, job, hosts, limits, office)
    try:
        _open({**guards, **heads}, office)
        members, out = _members(name, guards, office)
        launching, _ = _members(name, heads, office, must_be_free=False)
        if office.stop.is_set():
            return Batch(search=None, out={})
        if len(members) < job.least:
            why = f"it takes {job.least} free hosts, and {len(members)} of {len(hosts)} are"
            few = Verdict(status=Status.SKIP, kind=Kind.UNDECIDABLE, reason=f"undecidable: {why}")
            return Batch(search=None, out={**out, **dict.fromkeys(members, few)})
        ran = _Runner(name, job, members, launching, limits, office, retries).search()
    finally:
        _close({**guards, **heads})
    grown = _afterwards(name, guards, members, office)
    if office.stop.is_set():
        return Batch(search=None, out={})
    return Batch(search=_search(members, ran, grown), out=out)


def _search(
    members: Mapping[str, Member], ran: Sequence[Ran], grown: Mapping[str, Growth]
) -> Search:
    names = tuple(members)
    leaves = {name: m.site.leaf_name for name, m in members.items() if m.site.leaf_name}
    return Search(
        hosts=names,
        ran=tuple(ran),
        located=locate(names, [each.outcome for each in ran], leaves),
        growth=grown,
        floor_gbytes=max((floor for each in ran for floor in _floors(each)), default=None),
    )


def _floors(ran: Ran) -> Iterator[float]:
    """The least busbw that would have passed, from the picture of the run."""
    for figure in (figure for verdict in ran.verdicts for figure in verdict.figures):
        for line in figure.data.get("lines", ()):  # type: ignore[attr-defined] # plain JSON
            if line["name"] == "least that passes":
                yield float(line["y"])


# --- guards -------------------------------------------------------------------------------------


def _guards(
    name: str, job: Job, hosts: Sequence[Host], limits: Any, office: Office
) -> dict[str, _Guard]:
    """One for each host that is to be loaded."""

    def asked_of(host: Host) -> Callable[[Machine], tuple[Request, ...]]:
        def asked(machine: Machine) -> tuple[Request, ...]:
            folder = office.site_of(host, machine.platform).programs.value or ""
            programs = job.programs(machine.platform, limits)
            return ready.before(f"before {name}", machine, folder, programs)

        return asked

    return {host.name: _guard(host, asked_of(host), office) for host in hosts}


def _head_guards(
    name: str, job: Job, hosts: Sequence[Host], limits: Any, office: Office
) -> dict[str, _Guard]:
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


def _guard(host: Host, asked: Callable[[Machine], tuple[Request, ...]], office: Office) -> _Guard:
    return _Guard(
        host=host,
        visitor=errand(office.visitor_for(host), "", ready.HOLD_S + _AFTER_S),
        asked=asked,
        keep=lambda frame: office.keep(host.name, frame),
    )


def _open(guards: Mapping[str, _Guard], office: Office) -> None:
    """Open all sessions, and wait until every host is proven idle or has failed to be."""
    waiting = list(guards.values())
    while waiting and not office.stop.is_set():
        now, waiting = waiting[:_GUARDS], waiting[_GUARDS:]
        for guard in now:
            guard.open()
        for guard in now:
            _wait(guard.ready, _READY_S, office.stop)


def _wait(event: threading.Event, seconds: float, stop: threading.Event) -> bool:
    for _ in range(int(seconds / 0.1)):
        if event.wait(0.1) or stop.is_set():
            break
    return event.is_set()


def _close(guards: Mapping[str, _Guard]) -> None:
    for guard in guards.values():
        guard.close()
    for guard in guards.values():
        if guard.thread is not None:
            guard.thread.join(5.0)


def _members(
    name: str, guards: Mapping[str, _Guard], office: Office, *, must_be_free: bool = True
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
        )
    return members, out


def _unready(guard: _Guard) -> Verdict:
    error = guard.error
    reason = f"{error.code}: {error.reason}" if error else "the host was not ready in time"
    return Verdict(
        status=Status.ERROR,
        kind=Kind.CHECK,
        reason=f"nothing was launched on it: {reason}",
        error=type(error).__name__ if error else "HostDeadline",
    )


# --- rounds -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Runner:
    """Runs a job's rounds to their end."""

    name: str
    job: Job
    members: Mapping[str, Member]
    heads: Mapping[str, Member]  # that only launch
    limits: Any
    office: Office
    retries: int
    count: int = 0

    def search(self) -> list[Ran]:
        steps = self.job.steps(tuple(self.members.values()), self.limits)
        ran: list[Ran] = []
        outcomes: list[Outcome] = []
        for _ in range(_MOST_ROUNDS):
            round_ = steps(outcomes)
            if not round_ or self.office.stop.is_set():
                break
            brought = self._round(round_)
            if self.office.stop.is_set():
                break
            ran += brought
            outcomes += [each.outcome for each in brought]
            if all(each.outcome.good is None for each in ran) and len(ran) >= len(self.members):
                break  # nothing runs at all: more of the same would tell nothing
        return ran

    def _round(self, round_: Round) -> list[Ran]:
        """All runs of a round at once; those that proved nothing again, one after another."""
        brought = self._together(round_)
        for at, each in enumerate(brought):
            tries = 0
            while brought[at].outcome.good is None and tries < self.retries:
                if self.office.stop.is_set():
                    return brought
                tries += 1
                brought[at] = replace(self._together((each.run,))[0], retried=tries)
        return brought

    def _together(self, round_: Round) -> list[Ran]:
        launches = [self._launch(run) for run in round_]
        hosts = {name: member.host for name, member in {**self.heads, **self.members}.items()}
        _visit([each for each in launches if each.parts and not each.answered], hosts, self.office)
        brought = []
        for launch in launches:
            told = self.job.read(launch.run, self.members, self.limits, launch.answer())
            brought.append(replace(told, evidence=launch.evidence(self.job.shown)))
        return brought

    def _launch(self, run: Run) -> _Launch:
        self.count += 1
        at = f"{self.name} run {self.count}"
        try:
            parts = self.job.launch(run, {**self.heads, **self.members}, self.limits)
        except Unjudgeable as error:
            reason = f"{error.reason}; {error.remedy}" if error.remedy else error.reason
            return _Launch(run, (), reason)
        named = tuple(
            Part(part.host, tuple(replace(each, at=at) for each in part.requests)) for part in parts
        )
        launch = _Launch(run, named)
        if self.office.stored is not None:
            launch.recall(at, self.office.stored)
        return launch


@dataclass(slots=True)
class _Launch:
    """One launch on its way: parts, and the frames that came for them."""

    run: Run
    parts: tuple[Part, ...]
    problem: str = ""
    frames: dict[str, Frame] = field(default_factory=dict)
    errors: list[HostError] = field(default_factory=list)

    @property
    def answered(self) -> bool:
        """True where the part that reports has reported."""
        return all(request.key in self.frames for request in self.parts[0].requests)

    def evidence(self, shown: Callable[[str], str]) -> tuple[Evidence, ...]:
        """What a report shows of it."""
        keys = [request.key for part in self.parts[:1] for request in part.requests]
        return tuple(
            Evidence(
                key=key,
                rc=frame.rc,
                seconds=round(max(0.0, frame.ended_s - frame.started_s), 3),
                head=head_of(_shown(_output(frame), shown)),
                truncated=frame.truncated,
            )
            for key in keys
            if (frame := self.frames.get(key)) is not None
        )

    def recall(self, at: str, stored: Callable[[str], Iterable[Frame]]) -> None:
        """Take what the run had brought before it was cut off."""
        for frame in stored(self.parts[0].host):
            if frame.key.startswith(f"{at}: ") and frame.state in _ANSWERED:
                self.frames[frame.key] = frame

    def answer(self) -> Answered:
        """What the job reads."""
        if self.problem:
            return Answered(problem=self.problem)
        frames = [self.frames.get(request.key) for request in self.parts[0].requests]
        brought = [frame for frame in frames if frame is not None]
        if any(frame.state is State.TIMED_OUT for frame in brought):
            return Answered(outputs=tuple(_output(frame) for frame in brought), timed_out=True)
        if len(brought) < len(frames) or any(frame.state is State.LOST for frame in brought):
            why = "; ".join(f"{error.code}: {error.reason}" for error in self.errors)
            what = why or "its answer was not recorded"
            return Answered(problem=f"the run on {self.run} was lost: {what}")
        return Answered(outputs=tuple(_output(frame) for frame in brought))


def _shown(output: Output, shown: Callable[[str], str]) -> Output:
    return replace(output, stdout=shown(output.stdout))


def _output(frame: Frame) -> Output:
    rc = 0 if frame.rc is None else frame.rc
    return Output(decode(frame.stdout), decode(frame.stderr), rc, frame.truncated)


def _visit(launches: Sequence[_Launch], hosts: Mapping[str, Host], office: Office) -> None:
    """Carry out launches at once, each part in a session ``<run>.job-<n>``."""
    trips: list[tuple[Host, Visitor, _Launch, Part]] = []
    for launch in launches:
        for part in launch.parts:
            # Each its own: the first of two sessions that ends sweeps what carries its name, and
            # two names of the inventory may be one machine.
            session = f"job-{next(office.numbers)}"
            host = hosts[part.host]
            limit_s = sum(each.command.timeout_s for each in part.requests) + _START_S
            visitor = errand(office.visitor_for(host), session, limit_s)
            # A host may launch several runs at once: each trip has a host object of its own.
            trips.append((replace(host), visitor, launch, part))
    by_host = {id(trip[0]): trip for trip in trips}

    def sink_for(host: Host) -> Callable[[Frame], None]:
        _, _, launch, part = by_host[id(host)]

        def sink(frame: Frame) -> None:
            if frame.key == SUBJECTS:
                return
            office.keep(part.host, frame)
            if part is launch.parts[0]:
                launch.frames[frame.key] = frame

        return sink

    def done(host: Host, error: HostError | None) -> None:
        _, _, launch, part = by_host[id(host)]
        if part is not launch.parts[0]:
            return
        if error is not None:
            launch.errors.append(error)
        # A server whose client has ended would wait for ever.
        for _, visitor, other, theirs in trips:
            if other is launch and theirs is not part:
                visitor.stop()

    visit_all(
        [trip[0] for trip in trips],
        visitor_for=lambda host: by_host[id(host)][1],
        ask_for=lambda host: lambda _frame: by_host[id(host)][3].requests,
        sink_for=sink_for,
        forks=max(len(trips), 1),
        started=lambda _host: None,
        done=done,
        stop=office.stop,
    )


# --- afterwards ---------------------------------------------------------------------------------


def _afterwards(
    name: str, guards: Mapping[str, _Guard], members: Mapping[str, Member], office: Office
) -> dict[str, Growth]:
    """Sweep the members, and read the loss counters once more; what they grew by, by host."""
    at = f"after {name}"
    frames: dict[str, dict[str, Frame]] = {host: {} for host in members}

    def sink_for(host: Host) -> Callable[[Frame], None]:
        def sink(frame: Frame) -> None:
            if frame.key != SUBJECTS:
                office.keep(host.name, frame)
                frames[host.name][frame.key] = frame

        return sink

    visit_all(
        [member.host for member in members.values()],
        visitor_for=lambda host: errand(office.visitor_for(host), "", _AFTER_S),
        ask_for=lambda host: lambda _frame: ready.after(at, members[host.name].machine),
        sink_for=sink_for,
        forks=_GUARDS,
        started=lambda _host: None,
        done=lambda _host, _error: None,
        stop=office.stop,
    )
    grown = {}
    for host, member in members.items():
        ended, resist = ready.left_behind(at, frames[host], decode)
        if ended:
            office.note(f"{host}: {ended} processes of this run were left there, and were ended")
        if resist:
            office.note(f"{host}: processes of this run that do not end: {', '.join(resist)}")
        first = ready.counters(f"before {name}", member.machine, guards[host].frames, decode)
        last = ready.counters(at, member.machine, frames[host], decode)
        if first.values and last.values:
            begun = min(frame.started_s for frame in guards[host].frames.values())
            seconds = max(0.0, max(frame.ended_s for frame in frames[host].values()) - begun)
            grown[host] = growth(Span(first, last, seconds), tuple(first.values))
    return grown

"""The climb: visit every host, judge each as it ends, keep every event."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from functools import partial

from commcheck import loads, peers, stillness, together
from commcheck.collect.base import SUBJECTS, Frame, Visitor
from commcheck.collect.fleet import visit_all
from commcheck.crew import Brought, Crew
from commcheck.earlier import EarlierRuns, watched
from commcheck.errors import HostError, Interrupted
from commcheck.host_visit import HostVisit, kept_already
from commcheck.inventory.declared import Notes
from commcheck.inventory.endpoint import endpoint
from commcheck.jobs.office import Office
from commcheck.judge import gate_fleet, judge_host, waived
from commcheck.lazy import dataclass
from commcheck.metrics import unreached
from commcheck.metrics.fleet import Fleet, gather, subjects_of
from commcheck.model import Host, Result, Verdict
from commcheck.plan import HostPlan
from commcheck.prepare import Prepared, plan_of
from commcheck.readings import Parsed
from commcheck.report import events
from commcheck.report.cleaning import decode
from commcheck.report.folder import RunFolder
from commcheck.report.frame_lines import frame_lines
from commcheck.report.progress import Progress
from commcheck.report.record import Failure, Plan, Record, RunInfo, State
from commcheck.stop import Stop
from commcheck.stored import Stored, failure_of
from commcheck.waivers import apply, warn_of_unused, warn_of_void
from commcheck.workers import Pool, Post, Told


@dataclass(frozen=True, slots=True)
class _Judged:
    """What is known of a host whose session ended."""

    code: str
    failure: Failure | None
    results: tuple[Result, ...]
    platform: str | None  # as found; None: the host never said what it is


@dataclass(slots=True, repr=False)  # repr: signal.signal() builds it of bound methods
class Climber:
    """Carries out a prepared run: visits hosts, judges each as it ends, keeps every event."""

    prepared: Prepared
    info: RunInfo
    folder: RunFolder
    progress: Progress
    stored: Stored | None = None
    visits: dict[str, HostVisit] = field(init=False)
    earlier: EarlierRuns = field(init=False)
    results: list[Result] = field(default_factory=list)
    reached: dict[str, str] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    platforms: dict[str, str] = field(default_factory=dict)  # as the hosts were found
    notes: list[str] = field(default_factory=list)
    early: list[str] = field(default_factory=list)  # told before there was a first event
    begun: bool = False
    fleet: Fleet | None = None  # what monitoring told
    post: Post | None = None  # in a worker: to the process that writes the folder
    parsed: Parsed = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    began_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        """Lay out one visit a host."""
        self.earlier = EarlierRuns.beside(self.folder.path)
        self.visits = {
            plan.host.name: self._visit(plan.host.name, plan) for plan in self.prepared.climb.hosts
        }

    def _visit(self, host: str, plan: HostPlan) -> HostVisit:
        stored, plan = self.stored, loads.looking(plan)
        if stored is None or not stored.goes_on:
            return HostVisit(plan, partial(self.folder.keep, host))
        if host in stored.ended:
            return HostVisit(plan, kept_already)
        return HostVisit(
            plan, partial(self.folder.keep, host), answers=partial(stored.answers, host)
        )

    def climb(
        self,
        visitor_for: Callable[[Host], Visitor],
        stop: Stop,
        *,
        forks: int,
        deadline_s: float,
        host_deadline_s: float,
        workers: int = 1,
        crew: Crew | None = None,
    ) -> Record:
        """Visit every host and return the record, whole or interrupted.

        ``forks`` hosts at a time, and not fewer than ``workers``, begun in inventory order;
        ``deadline_s`` > 0 limits the run. A visit that has not ended 3 s after
        ``host_deadline_s`` is given up, whatever holds it. ``workers`` > 1: so many processes
        visit and judge, each its share. ``crew``: visits what is reached over SSH.
        """
        plan = plan_of(self.prepared)
        hosts = [each.host for each in self.prepared.climb.hosts]
        self._ask_fleet()
        visit = partial(
            visit_all,
            visitor_for=self._or_stored(visitor_for),
            ask_for=lambda host: self.visits[host.name].ask,
            sink_for=lambda host: self.visits[host.name].sink,
            forks=forks // workers,
            deadline_s=host_deadline_s + 3,
        )
        with contextlib.ExitStack() as at_end:
            at_end.callback(self.progress.finish)  # whatever ends it: a view may hold the terminal
            pool = at_end.enter_context(Pool(workers, hosts, partial(self._work, visit)))
            self._begin(plan)
            self.progress.begin(plan)
            self.begun = True
            for text in (*self.early, *self.prepared.warnings):
                self.note(text)
            with stop.on_signals(deadline_s), stillness.watched(self.note):
                if crew is not None:
                    here = self._sent_out(crew, forks, stop.event)
                    visit(here, started=self._started, done=self._done, stop=stop.event)
                elif workers > 1:
                    pool.listen(self._hear, self._done, stop.event, host_deadline_s)
                else:
                    visit(hosts, started=self._started, done=self._done, stop=stop.event)
                self._compare()
                self._load(visitor_for, stop.event)
            self._after_all()
            ended = self._now()
            state: State = "interrupted" if stop.event.is_set() else "complete"
            self.folder.event(events.end_event(ended, state, stop.exit_code))
        return Record(
            info=self.info,
            plan=plan,
            results=tuple(self.results),
            notes=tuple(self.notes),
            ended=ended,
            state=state,
            reached=self.reached,
            failures=self.failures,
            signalled=stop.exit_code,
        )

    def _now(self) -> datetime:
        """The time of day; a clock that was set meanwhile makes no run longer, or end too early."""
        if self.stored is not None and self.stored.goes_on:
            return max(datetime.now(UTC), self.info.started)
        return self.info.started + timedelta(seconds=time.monotonic() - self.began_s)

    def _ask_fleet(self) -> None:
        """Ask what watches the hosts, once for all of them that will be visited now."""
        ended = self.stored.ended if self.stored is not None else {}
        visits = [visit for name, visit in self.visits.items() if name not in ended]
        self.fleet = gather((each.plan.host, subjects_of(each.plan)) for each in visits)
        for visit in visits:
            visit.fleet = self.fleet

    def _begin(self, plan: Plan) -> None:
        """The first events. A run that goes on has them, unless it was killed between the two."""
        if self.stored is not None and self.stored.goes_on:
            self.folder.event(events.resumed_event(datetime.now(UTC)))
        else:
            self.folder.event(events.run_event(self.info))
        self.folder.event(events.plan_event(plan))

    def _or_stored(self, visitor_for: Callable[[Host], Visitor]) -> Callable[[Host], Visitor]:
        """The stored answers stand for the hosts that need not be asked."""
        if self.stored is None:
            return visitor_for
        ended, replay = self.stored.ended, self.stored.visitor
        return lambda host: replay if host.name in ended else visitor_for(host)

    def note(self, text: str) -> None:
        """Keep and show something that the operator should know. Any thread may call it."""
        if self.post is not None:
            self.post(Told("note", "", text))
            return
        if not self.begun:
            self.early.append(text)
            return
        with self.lock:
            self.notes.append(text)
            if self.stored is None or text not in self.stored.notes:
                self.folder.event(events.note_event(text))
        self.progress.note(text)

    def _waive(self, verdict: Verdict, check: str, host: str) -> Verdict:
        return apply(verdict, check, host, self.prepared.granted, self.info.started.date())

    @property
    def _is_whole(self) -> bool:
        """False for a shard, which does not see all peers of its hosts."""
        return len(self.prepared.climb.hosts) >= len(self.prepared.selected)

    def _compare(self) -> None:
        """What can be said only when every host was looked at: is it like its peers?"""
        checks = [one.check for one in self.prepared.found]
        for result in peers.compare(checks, self.results, whole=self._is_whole):
            self._add(waived(result, self._waive))
        asked_of = {plan.host.name: plan.asked for plan in self.prepared.climb.hosts}
        for result in together.judged(checks, self.results, asked_of):
            self._add(waived(result, self._waive))

    def _add(self, result: Result) -> None:
        """A result that is told beside or after those of single hosts."""
        self.results.append(result)
        self.folder.event(events.result_event(result))
        self.progress.result(result)

    def _load(self, visitor_for: Callable[[Host], Visitor], stop: threading.Event) -> None:
        """Carry out the plays that load, on the hosts that are left."""
        planned = loads.loads_of(self.prepared.climb.hosts)
        stored = self.stored if self.stored is not None and self.stored.goes_on else None
        made: list[Result] = []
        if stored is not None:
            made, planned = loads.done_before(planned, stored.results)
            for result in made:
                self._add(result)
        if not planned:
            return
        office = Office(
            visitor_for=visitor_for,
            keep=self.folder.keep,
            stored=stored.readable if stored is not None else None,
            site_of=loads.site_of,
            address_of=lambda host: endpoint(host).address,
            note=self.note,
            stop=stop,
            platforms=self.platforms,
            host_named={each.name: each for each in self.prepared.inventory.hosts}.get,
        )

        def emit(result: Result) -> None:
            made.append(waived(result, self._waive))
            self._add(made[-1])

        loads.climb(planned, office, lambda: self.results, emit)
        for load in planned:
            for host in load.hosts:
                self.folder.release(host.name)
        asked_of = {plan.host.name: plan.asked for plan in self.prepared.climb.hosts}
        for result in list(loads.gated_above(made, self.results, asked_of)):
            self._add(result)

    def _after_all(self) -> None:
        """What can be said only when everything was judged: fleet gates, waivers in vain."""
        asked_of = {plan.host.name: plan.asked for plan in self.prepared.climb.hosts}
        changed = gate_fleet(self.results, asked_of)
        for result in changed:
            self.folder.event(events.result_event(result))
        self.results.extend(changed)
        silent = {name for name, code in self.reached.items() if code in unreached.SILENT}
        hosts = [plan.host for plan in self.prepared.climb.hosts if plan.host.name in silent]
        for line in unreached.told_of(self.fleet, hosts) if self.fleet is not None else ():
            self.note(line)
        notes, today = Notes(), self.info.started.date()
        warn_of_void([each.waiver for each in self.prepared.granted], notes, today)
        warn_of_unused(self.prepared.granted, self.results, notes, today)
        for warning in sorted(notes.warnings):
            self.note(warning.line("warning"))

    def _work(
        self, visit: Callable[..., None], hosts: Sequence[Host], post: Post, stop: threading.Event
    ) -> None:
        """Visit and judge some of the hosts, in a worker."""
        self.post = post
        for visited in (self.visits[host.name] for host in hosts):
            if visited.keep is not kept_already:
                visited.keep = partial(_post_lines, post, visited.plan.host.name)

        def done(host: Host, error: HostError | None) -> None:
            judged = self._judged(host, error)
            if judged is not None:
                post(Told("judged", host.name, judged))

        visit(hosts, started=lambda host: post(Told("started", host.name)), done=done, stop=stop)

    def _sent_out(self, crew: Crew, forks: int, stop: threading.Event) -> list[Host]:
        """Have the crew visit its part of the hosts; the others are handed back."""
        ended = self.stored.ended if self.stored is not None else {}
        away: list[HostPlan] = []
        here: list[HostPlan] = []
        for plan in (visit.plan for visit in self.visits.values()):
            is_far = plan.host.name not in ended and endpoint(plan.host).kind == "ssh"
            (away if is_far else here).append(plan)
        crew.visit(
            away, forks=forks, brought=self._brought, lost=self._done, note=self.note, stop=stop
        )
        return [plan.host for plan in here]

    def _brought(self, host: Host, brought: Brought) -> None:
        """What a worker heard from a host, as if it were said now."""
        visit, error = self.visits[host.name], brought.error
        self._started(host)
        try:
            for frame in brought.frames:
                if frame.key not in visit.frames:
                    visit.sink(frame)
                if frame.key == SUBJECTS:
                    visit.ask(frame)
        except HostError as problem:
            error = problem
        self._done(host, error)

    def _hear(self, told: Told) -> None:
        match told.kind:
            case "started":
                self.progress.host_started(told.host)
            case "lines":
                self.folder.lines(told.host, told.what)
            case "note":
                self.note(told.what)
            case "judged":
                self._keep_judged(told.host, told.what)

    def _started(self, host: Host) -> None:
        self.progress.host_started(host.name)

    def _done(self, host: Host, error: HostError | None) -> None:
        judged = self._judged(host, error)
        if judged is not None:
            self._keep_judged(host.name, judged)
        else:
            self.folder.release(host.name)

    def _judged(self, host: Host, error: HostError | None) -> _Judged | None:
        """What the session brought; None where it was interrupted: the record says so by itself."""
        visit = self.visits.pop(host.name)
        if visit.machine is not None and not self._is_of_another_run(host.name):
            keys = watched(visit.frames)
            for frame in self.earlier.frames(host.name, visit.machine.boot_id, keys):
                visit.sink(frame)
        if isinstance(error, Interrupted):
            return None
        results = judge_host(
            host,
            visit.plan.asked,
            visit.machine,
            visit.frames,
            error,
            decode,
            self._waive,
            self.parsed,
            visit.known,
        )
        platform = visit.machine.platform if visit.machine is not None else None
        return _Judged(error.code if error else "", failure_of(error), results, platform)

    def _keep_judged(self, host: str, judged: _Judged) -> None:
        self.folder.release(host)
        with self.lock:
            self.reached[host] = judged.code
            if judged.failure is not None:
                self.failures[host] = judged.failure
            if judged.platform is not None:
                self.platforms[host] = judged.platform
            self.results.extend(judged.results)
            self.folder.event(events.host_event(host, judged.code, judged.failure))
            for result in judged.results:
                self._keep(result)
        for result in judged.results:
            if not peers.is_waiting(result):
                self.progress.result(result)
        self.progress.host_done(host, judged.code)

    def _is_of_another_run(self, host: str) -> bool:
        """True where what was read earlier is among the frames, or was never there."""
        stored = self.stored
        return stored is not None and not stored.goes_on and host in stored.ended

    def _keep(self, result: Result) -> None:
        """Append what the folder does not hold yet, as it stands there."""
        event = events.result_event(result)
        if self.stored is not None:
            known = self.stored.results.get((result.host, result.check))
            if known is not None and events.result_event(known) == event:
                return
        self.folder.event(event)


def _post_lines(post: Post, host: str, *frames: Frame) -> None:
    post(Told("lines", host, frame_lines(frames)))

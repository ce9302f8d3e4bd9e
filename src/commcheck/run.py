"""One run: prepare (nothing contacted, nothing written), climb, record, report."""

from __future__ import annotations

import fnmatch
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from commcheck import subjects
from commcheck.collect.base import SUBJECTS, Frame, Request, Visitor
from commcheck.collect.fleet import visit_all
from commcheck.discover import FoundCheck, bundled_folder, discover
from commcheck.errors import CheckError, HostError, Interrupted, PlaybookError, Unjudgeable
from commcheck.fields import near
from commcheck.inventory.declared import Notes
from commcheck.inventory.load import Inventory, load
from commcheck.inventory.patterns import matching, select
from commcheck.judge import Parsed, gate_fleet, judge_host
from commcheck.model import Host, Machine, Result, Verdict
from commcheck.plan import Climb, HostPlan, make_climb, requests, validate
from commcheck.playbook import Entry, Play, Playbook
from commcheck.playbook import load as load_playbook
from commcheck.report import events
from commcheck.report.cleaning import decode
from commcheck.report.folder import RunFolder
from commcheck.report.progress import Progress
from commcheck.report.record import Plan, PlannedCheck, Record, RunInfo, State
from commcheck.stop import Stop
from commcheck.waivers import Granted, apply, warn_of_unused, warn_of_void
from commcheck.waivers import load as load_waivers


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the operator chose to run, on which hosts."""

    inventory: tuple[str, ...]
    inventory_from: Path | None = None  # where its names count from; None: the current folder
    playbook: Path | None = None
    limit: str = ""
    only: tuple[str, ...] = ()  # globs of check ids
    skip: tuple[str, ...] = ()
    check_folders: tuple[Path, ...] = ()
    waivers: tuple[Path, ...] = ()
    allow: frozenset[str] = frozenset()  # "load", "write"


def forks_of(playbook: Playbook, forks: int) -> int:
    """Hosts at a time: the smallest of what operator, playbook and plays say."""
    said = [playbook.forks, *(play.forks for play in playbook.plays)]
    return min(forks, *(each for each in said if each is not None), forks)


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that is known before the first host is contacted."""

    inventory: Inventory
    playbook: Playbook
    found: tuple[FoundCheck, ...]
    climb: Climb
    warnings: tuple[str, ...]
    granted: tuple[Granted, ...] = ()


def prepare(choice: Choice, *, cwd: Path) -> Prepared:
    """Read and check everything. Raises ``UsageError``; contacts nothing, writes nothing."""
    found = discover(choice.check_folders, cwd=cwd)
    path = choice.playbook or bundled_folder("playbooks") / "default.yaml"
    playbook = load_playbook(path, found)
    inventory = load(choice.inventory, cwd=choice.inventory_from or cwd)
    hosts = inventory.hosts
    if choice.limit:
        hosts = select(inventory, choice.limit, cwd=cwd)
    limited = {host.name for host in hosts}
    warnings = list(inventory.warnings)
    plays: list[tuple[Play, frozenset[str]]] = []
    for play in playbook.plays:
        names = frozenset(host.name for host in matching(inventory, play.hosts, cwd=cwd)) & limited
        if not names:
            warnings.append(
                f"{play.position}: warning: play {play.name!r} has no host here [empty]"
            )
        plays.append((replace(play, checks=_chosen(play.checks, choice)), names))
    if (choice.only or choice.skip) and not any(play.checks for play, _ in plays):
        wanted = ", ".join(choice.only) or f"all but {', '.join(choice.skip)}"
        raise CheckError(f"error: no check of playbook {playbook.name!r} matches {wanted} [checks]")
    climb = make_climb(
        hosts, plays, found, lambda check: playbook.not_permitted(check, choice.allow) or ""
    )
    warnings.extend(validate(climb, found))
    _refuse_unknown(playbook, inventory)
    waivers = (
        *playbook.waivers,
        *(each for path in choice.waivers for each in load_waivers(path, found)),
    )
    granted = tuple(
        Granted(waiver, frozenset(h.name for h in matching(inventory, waiver.hosts, cwd=cwd)))
        for waiver in waivers
    )
    return Prepared(inventory, playbook, found, climb, tuple(warnings), granted)


def _refuse_unknown(playbook: Playbook, inventory: Inventory) -> None:
    """Raise ``PlaybookError`` for groups that the inventory does not have, and for retries.

    A playbook that only looks is asked in one go, so nothing could be asked again.
    """
    problems = []
    for entry in (entry for play in playbook.plays for entry in play.checks):
        for when in entry.when:
            for group in (*when.group, *when.not_group):
                if group not in inventory.groups:
                    hint = near(group, inventory.groups)
                    problems.append(f"{when.position}: error: no group {group!r}{hint} [group]")
        if entry.retries:
            problems.append(
                f"{entry.position}: error: retries: {entry.check} only looks, and is asked once "
                "[retries]"
            )
    if problems:
        raise PlaybookError(*dict.fromkeys(problems))


def _chosen(entries: Sequence[Entry], choice: Choice) -> tuple[Entry, ...]:
    return tuple(
        entry
        for entry in entries
        if (not choice.only or any(fnmatch.fnmatchcase(entry.check, each) for each in choice.only))
        and not any(fnmatch.fnmatchcase(entry.check, each) for each in choice.skip)
    )


def new_run_id(now: datetime) -> str:
    """UTC start and four random hex digits: sorts by time, can be said aloud."""
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def plan_of(prepared: Prepared) -> Plan:
    """The plan as the record keeps it."""
    return Plan(
        hosts=tuple(plan.host.name for plan in prepared.climb.hosts),
        checks=tuple(
            PlannedCheck(
                id=one.id,
                title=one.check.title,
                source="bundled" if one.bundled else str(one.path),
                overrides=str(one.overrides or ""),
            )
            for one in prepared.climb.checks
        ),
        cases={
            plan.host.name: tuple(each.check.id for each in plan.asked)
            for plan in prepared.climb.hosts
        },
    )


# --- the climb ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Visit:
    """What is known of one host while its session runs."""

    plan: HostPlan
    keep: Callable[[Frame], None]
    frames: dict[str, Frame] = field(default_factory=dict)
    machine: Machine | None = None

    def ask(self, frame: Frame) -> Sequence[Request]:
        try:
            self.machine = subjects.machine(self.plan.host, decode(frame.stdout))
        except Unjudgeable as error:
            raise HostError("no-facts", error.reason, error.remedy) from error
        return requests(self.plan.host, self.machine, self.plan.asked)

    def sink(self, frame: Frame) -> None:
        if frame.key != SUBJECTS:
            self.frames[frame.key] = frame
        self.keep(frame)


@dataclass(slots=True, repr=False)  # repr: signal.signal() builds it of bound methods
class Climber:
    """Carries out a prepared run: visits hosts, judges each as it ends, keeps every event."""

    prepared: Prepared
    info: RunInfo
    folder: RunFolder
    progress: Progress
    visits: dict[str, _Visit] = field(init=False)
    results: list[Result] = field(default_factory=list)
    reached: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    early: list[str] = field(default_factory=list)  # told before there was a first event
    begun: bool = False
    parsed: Parsed = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Lay out one visit a host."""
        self.visits = {
            plan.host.name: _Visit(plan, partial(self.folder.frame, plan.host.name))
            for plan in self.prepared.climb.hosts
        }

    def climb(
        self,
        visitor_for: Callable[[Host], Visitor],
        stop: Stop,
        *,
        forks: int,
        deadline_s: float,
        host_deadline_s: float,
    ) -> Record:
        """Visit every host and return the record, whole or interrupted.

        ``forks`` hosts at a time, begun in inventory order; ``deadline_s`` > 0 limits the run. A
        visit that has not ended 3 s after ``host_deadline_s`` is given up, whatever holds it.
        """
        plan = plan_of(self.prepared)
        self.folder.event(events.run_event(self.info))
        self.folder.event(events.plan_event(plan))
        self.progress.begin(plan)
        self.begun = True
        for text in (*self.early, *self.prepared.warnings):
            self.note(text)
        with stop.on_signals(deadline_s):
            visit_all(
                [each.host for each in self.prepared.climb.hosts],
                visitor_for,
                lambda host: self.visits[host.name].ask,
                lambda host: self.visits[host.name].sink,
                forks=forks,
                started=lambda host: self.progress.host_started(host.name),
                done=self._done,
                stop=stop.event,
                deadline_s=host_deadline_s + 3,
            )
        self._after_all()
        ended = datetime.now(UTC)
        state: State = "interrupted" if stop.event.is_set() else "complete"
        self.folder.event(events.end_event(ended, state))
        self.progress.finish()
        return Record(
            info=self.info,
            plan=plan,
            results=tuple(self.results),
            notes=tuple(self.notes),
            ended=ended,
            state=state,
            reached=self.reached,
        )

    def note(self, text: str) -> None:
        """Keep and show something that the operator should know. Any thread may call it."""
        if not self.begun:
            self.early.append(text)
            return
        with self.lock:
            self.notes.append(text)
            self.folder.event(events.note_event(text))
        self.progress.note(text)

    def _waive(self, verdict: Verdict, check: str, host: str) -> Verdict:
        return apply(verdict, check, host, self.prepared.granted, self.info.started.date())

    def _after_all(self) -> None:
        """What can be said only when every host was judged: fleet gates, waivers in vain."""
        asked_of = {plan.host.name: plan.asked for plan in self.prepared.climb.hosts}
        changed = gate_fleet(self.results, asked_of)
        for result in changed:
            self.folder.event(events.result_event(result))
        self.results.extend(changed)
        notes, today = Notes(), self.info.started.date()
        warn_of_void([each.waiver for each in self.prepared.granted], notes, today)
        warn_of_unused(self.prepared.granted, self.results, notes, today)
        for warning in sorted(notes.warnings):
            self.note(warning.line("warning"))

    def _done(self, host: Host, error: HostError | None) -> None:
        visit = self.visits.pop(host.name)
        self.folder.release(host.name)
        if isinstance(error, Interrupted):
            return  # planned and not judged: the record says so by itself
        code = error.code if error else ""
        judged = judge_host(
            host,
            visit.plan.asked,
            visit.machine,
            visit.frames,
            error,
            decode,
            self._waive,
            self.parsed,
        )
        with self.lock:
            self.reached[host.name] = code
            self.results.extend(judged)
            self.folder.event(events.host_event(host.name, code))
            for result in judged:
                self.folder.event(events.result_event(result))
        for result in judged:
            self.progress.result(result)
        self.progress.host_done(host.name, code)

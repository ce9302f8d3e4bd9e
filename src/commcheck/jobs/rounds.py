"""Rounds of runs: launched beside the guards, each part in a session of its own, and read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final

from commcheck.collect.base import SUBJECTS, Frame, Sink, State, Visitor
from commcheck.collect.errand import errand
from commcheck.collect.fleet import visit_all
from commcheck.command import Output
from commcheck.errors import HostError, Unjudgeable
from commcheck.jobs.job import Answered, Job, Member, Part, Ran
from commcheck.jobs.office import Office
from commcheck.jobs.outcomes import Outcome, Run
from commcheck.jobs.pairing import Round
from commcheck.lazy import dataclass
from commcheck.model import Evidence, Host
from commcheck.readings import evidence_of, head_of, output_of
from commcheck.report.cleaning import decode

_START_S: Final = 30.0
"""A launch's session may take this much longer than its command: connecting, clearing up."""

_MOST_ROUNDS: Final = 4096

_ANSWERED: Final = (State.DONE, State.TIMED_OUT)


@dataclass(slots=True)
class Runner:
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
            return _Launch(run, (), problem=reason)
        named = tuple(
            Part(part.host, tuple(replace(each, at=at) for each in part.requests)) for part in parts
        )
        launch = _Launch(run, named, len(named) if self.job.all_report else 1)
        if self.office.stored is not None:
            launch.recall(at, self.office.stored)
        return launch


@dataclass(slots=True)
class _Launch:
    """One launch on its way: parts, the first ``reporting`` of which report, and their frames."""

    run: Run
    parts: tuple[Part, ...]
    reporting: int = 1
    problem: str = ""
    frames: dict[tuple[str, str], Frame] = field(default_factory=dict)  # by host and key
    errors: list[HostError] = field(default_factory=list)

    @property
    def answered(self) -> bool:
        """True where all that report have reported."""
        return all(len(self.brought(part)) == len(part.requests) for part in self.reports)

    @property
    def reports(self) -> tuple[Part, ...]:
        """The parts whose answers count."""
        return self.parts[: self.reporting]

    def brought(self, part: Part) -> list[Frame]:
        """What came for a part, in the order of its requests."""
        keys = [(part.host, request.key) for request in part.requests]
        return [self.frames[key] for key in keys if key in self.frames]

    def went_wrong(self, part: Part) -> bool:
        """True where a part that has ended did not do all it should."""
        frames = self.brought(part)
        return len(frames) < len(part.requests) or any(frame.rc != 0 for frame in frames)

    def evidence(self, shown: Callable[[str], str]) -> tuple[Evidence, ...]:
        """What a report shows of it."""
        return tuple(
            evidence_of(frame, head_of(_shown(output_of(frame, decode), shown)))
            for part in self.reports
            for frame in self.brought(part)
        )

    def recall(self, at: str, stored: Callable[[str], Iterable[Frame]]) -> None:
        """Take what the run had brought before it was cut off."""
        for part in self.reports:
            for frame in stored(part.host):
                if frame.key.startswith(f"{at}: ") and frame.state in _ANSWERED:
                    self.frames[part.host, frame.key] = frame

    def answer(self) -> Answered:
        """What the job reads."""
        if self.problem:
            return Answered(problem=self.problem)
        brought = {part.host: self.brought(part) for part in self.reports}
        whole = [
            part.host
            for part in self.reports
            if len(brought[part.host]) == len(part.requests)
            and all(frame.state in _ANSWERED for frame in brought[part.host])
        ]
        told = {host: tuple(output_of(each, decode) for each in brought[host]) for host in brought}
        by_host = {host: told[host] for host in whole}
        outputs = told[self.parts[0].host]
        if any(frame.state is State.TIMED_OUT for frames in brought.values() for frame in frames):
            return Answered(outputs=outputs, timed_out=True, by_host=by_host)
        if len(whole) < len(self.reports):
            why = "; ".join(f"{error.code}: {error.reason}" for error in self.errors)
            what = why or "its answer was not recorded"
            return Answered(problem=f"the run on {self.run} was lost: {what}", by_host=by_host)
        return Answered(outputs=outputs, by_host=by_host)


def _shown(output: Output, shown: Callable[[str], str]) -> Output:
    return replace(output, stdout=shown(output.stdout))


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

    def sink_for(host: Host) -> Sink:
        _, _, launch, part = by_host[id(host)]

        def sink(*frames: Frame) -> None:
            for frame in frames:
                if frame.key == SUBJECTS:
                    continue
                office.keep(part.host, frame)
                if part in launch.reports:
                    launch.frames[part.host, frame.key] = frame

        return sink

    def done(host: Host, error: HostError | None) -> None:
        _, _, launch, part = by_host[id(host)]
        if part not in launch.reports:
            return
        if error is not None:
            launch.errors.append(error)
        if launch.reporting > 1 and not launch.went_wrong(part):
            return
        # A server whose client has ended would wait for ever, and so would ranks without the rest.
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

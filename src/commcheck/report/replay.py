"""The record that a stream of events tells: what ``events`` wrote, read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar, cast, get_args

from commcheck.errors import RunFolderError
from commcheck.model import (
    Bound,
    Cause,
    Evidence,
    Figure,
    Finding,
    Kind,
    Layer,
    Remedy,
    Result,
    Status,
    Verdict,
    Words,
)
from commcheck.report import changes as changed
from commcheck.report.changes import Changes
from commcheck.report.events import SCHEMA, Event
from commcheck.report.jsons import decoded
from commcheck.report.record import Failure, Plan, PlannedCheck, Record, RunInfo, State

T = TypeVar("T")


def record_from_events(lines: Iterable[str]) -> Record:
    """The record of a stream; a last line that a kill cut off is left out.

    Raises ``RunFolderError`` for what is no event stream of this version.
    """
    events = _parsed(lines)
    try:
        first = next(events, None)
        if first is None:
            raise RunFolderError("no event was written: the run was killed before it began")
        if first.get("schema") != SCHEMA or first["event"] != "run":
            found = first.get("schema", "none")
            raise RunFolderError(f"schema {found!r} where this commcheck reads {SCHEMA}")
        return _record(_info(first), events)
    except (
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        AttributeError,
        RecursionError,
    ) as error:
        raise RunFolderError(f"no event stream: {type(error).__name__}: {error}") from error


def _parsed(lines: Iterable[str]) -> Iterator[Event]:
    broken = ""
    for number, line in enumerate(lines, start=1):
        if broken:
            raise RunFolderError(broken)
        if not line.strip():
            continue
        try:
            event = decoded(line)
        except ValueError as error:
            broken = f"line {number} is no event: {error}"  # fine where it is the last
            continue
        if not isinstance(event, dict) or "event" not in event:
            raise RunFolderError(f"line {number} is no event")
        yield event


def _record(info: RunInfo, events: Iterator[Event]) -> Record:
    plan = Plan()
    results: list[Result] = []
    notes: list[str] = []
    reached: dict[str, str] = {}
    failures: dict[str, Failure] = {}
    changes: Changes | None = None
    ended: datetime | None = None
    state: State = "incomplete"
    screen: tuple[str, ...] = ()
    facts: Mapping[str, object] = {}
    for event in events:
        match event["event"]:
            case "plan":
                plan = _plan(event)
            case "host":
                reached[event["host"]] = event["code"]
                if "error" in event:
                    failures[event["host"]] = _failure(event)
            case "result":
                results.append(_result(event))
            case "note":
                notes.append(event["text"])
            case "changes":
                changes = changed.from_json(event)
            case "resumed":
                ended, state = None, "incomplete"
            case "analysis":
                screen, facts = tuple(event["screen"]), dict(event["facts"])
            case "end":
                ended, state = _when(event["ended"]), _state(event["state"])
            case _:
                pass  # a later version's event: additions are allowed within a major version
    return Record(
        info,
        plan,
        tuple(results),
        tuple(notes),
        ended,
        state,
        reached,
        failures,
        changes,
        screen=screen,
        facts=facts,
    )


def _failure(event: Event) -> Failure:
    return Failure(event["error"], event["code"], event["reason"], event["remedy"])


def _when(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _state(text: str) -> State:
    for state in get_args(State):
        if text == state:
            return cast("State", state)
    raise ValueError(f"no state {text!r}")


def _info(event: Event) -> RunInfo:
    return RunInfo(
        run_id=event["run_id"],
        started=_when(event["started"]),
        version=event["version"],
        playbook=event["playbook"],
        inventory=tuple(event["inventory"]),
        inventory_digest=event["inventory_digest"],
        limit=event["limit"],
        settings=dict(event["settings"]),
        strict=event["strict"],
        noun=event.get("noun", "host"),
        choice={name: tuple(words) for name, words in event.get("choice", {}).items()},
    )


def _plan(event: Event) -> Plan:
    sets = [tuple(checks) for checks in event["sets"]]
    for check in [each for checks in sets for each in checks]:
        Layer.of(check)  # raises where the id names no layer
    return Plan(
        hosts=tuple(event["hosts"]),
        checks=tuple(
            PlannedCheck(
                check["id"],
                Words(**check["title"]),
                check["source"],
                check["overrides"],
                check.get("digest", ""),
                tuple(check.get("explained_by", ())),
                tuple(check.get("contradicts", ())),
            )
            for check in event["checks"]
        ),
        cases={host: sets[number] for host, number in event["cases"].items()},
        groups={name: tuple(hosts) for name, hosts in event.get("groups", {}).items()},
    )


def _result(event: Event) -> Result:
    Layer.of(event["check"])  # raises where the id names no layer
    if not event["findings"]:
        raise ValueError(f"{event['check']} on {event['host']} has no finding")
    return Result(
        check=event["check"],
        host=event["host"],
        seconds=event["seconds"],
        retried=event.get("retried", 0),
        findings=tuple(
            _read_finding(event["check"], event["host"], finding) for finding in event["findings"]
        ),
    )


def _read_finding(check: str, host: str, event: Event) -> Finding:
    return Finding(
        check=check,
        host=host,
        subject=event["subject"],
        verdict=Verdict(
            status=Status(event["status"]),
            kind=Kind(event["kind"]),
            reason=event["reason"],
            cause=_read_cause(event["cause"]) if event["cause"] else None,
            error=event["error"],
            remedies=_each(_read_remedy, event["remedies"]),
            measured=event["measured"],
            rule=event["rule"],
            hosts=tuple(event["hosts"]),
            figures=_each(_read_figure, event.get("figures")),
            follows=event.get("follows", ""),
        ),
        bounds=_each(lambda bound: Bound(**bound), event["bounds"]),
        evidence=_each(lambda each: Evidence(**each), event["evidence"]),
        unproven_below=tuple(event["unproven_below"]),
    )


def _each(read: Callable[[Event], T], events: Sequence[Event] | None) -> tuple[T, ...]:
    """What most findings have none of: then nothing is set up to go through it."""
    return tuple(map(read, events)) if events else ()


def _read_figure(event: Event) -> Figure:
    return Figure(event["form"], Words(**event["title"]), event["data"])


def _read_cause(event: Event) -> Cause:
    return Cause(
        slug=event["slug"],
        title=Words(**event["title"]),
        meaning=Words(**event["meaning"]),
        remedies=tuple(_read_remedy(remedy) for remedy in event["remedies"]),
        everywhere=Words(**event["everywhere"]) if "everywhere" in event else None,
    )


def _read_remedy(event: Event) -> Remedy:
    return Remedy(
        command=event["command"],
        effect=Words(**event["effect"]),
        precondition=Words(**event["precondition"]),
        who=event["who"],
    )

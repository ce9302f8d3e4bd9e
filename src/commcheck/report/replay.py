"""The record that a stream of events tells: what ``events`` wrote, read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast, get_args

import msgspec

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
from commcheck.report.record import SIGNALLED, Failure, Plan, PlannedCheck, Record, RunInfo, State


class _Finding(msgspec.Struct):
    """A finding as a stream tells it, all its parts made while the line is parsed."""

    subject: str
    status: Status
    kind: Kind
    reason: str
    cause: Cause | None
    error: str
    remedies: tuple[Remedy, ...]
    measured: dict[str, Any]
    rule: str
    hosts: tuple[str, ...]
    bounds: tuple[Bound, ...]
    evidence: tuple[Evidence, ...]
    unproven_below: tuple[str, ...]
    figures: tuple[Figure, ...] = ()
    follows: str = ""
    advisory: bool = False


class _Judged(msgspec.Struct):
    """The event of a result."""

    check: str
    host: str
    seconds: float
    findings: tuple[_Finding, ...]
    retried: int = 0


_JUDGED: Final = msgspec.json.Decoder(_Judged)
_IS_JUDGED: Final = '{"event":"result",'
"""How ``events`` begins it. Nearly all of a stream are such."""


def record_from_events(lines: Iterable[str]) -> Record:
    """The record of a stream; a last line that a kill cut off is left out.

    Raises ``RunFolderError`` for what is no event stream of this version.
    """
    events = _parsed(lines)
    try:
        first = next(events, None)
        if first is None:
            raise RunFolderError("no event was written: the run was killed before it began")
        if isinstance(first, _Judged):
            raise RunFolderError("its first event is a result")
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


def _parsed(lines: Iterable[str]) -> Iterator[Event | _Judged]:
    broken = ""
    for number, line in enumerate(lines, start=1):
        if broken:
            raise RunFolderError(broken)
        if line.startswith(_IS_JUDGED):
            try:
                yield _JUDGED.decode(line)
                continue
            except ValueError:
                pass  # read once more below, where a cut line is told from an odd one
        if not line.strip():
            continue
        try:
            event = decoded(line)
        except ValueError as error:
            broken = f"line {number} is no event: {error}"  # fine where it is the last
            continue
        if not isinstance(event, dict) or "event" not in event:
            raise RunFolderError(f"line {number} is no event")
        if event["event"] != "result":
            yield event
            continue
        try:
            yield msgspec.convert(event, _Judged)
        except msgspec.ValidationError as error:
            raise RunFolderError(f"line {number} is no result: {error}") from None


def _record(info: RunInfo, events: Iterator[Event | _Judged]) -> Record:
    plan = Plan()
    results: list[Result] = []
    notes: list[str] = []
    reached: dict[str, str] = {}
    failures: dict[str, Failure] = {}
    changes: Changes | None = None
    ended: datetime | None = None
    state: State = "incomplete"
    signalled = 0
    screen: tuple[str, ...] = ()
    facts: Mapping[str, object] = {}
    for event in events:
        if isinstance(event, _Judged):
            results.append(_result(event))
            continue
        match event["event"]:
            case "plan":
                plan = _plan(event)
            case "host":
                reached[event["host"]] = event["code"]
                if "error" in event:
                    failures[event["host"]] = _failure(event)
            case "note":
                notes.append(event["text"])
            case "changes":
                changes = changed.from_json(event)
            case "resumed":
                ended, state, signalled = None, "incomplete", 0
            case "analysis":
                screen, facts = tuple(event["screen"]), dict(event["facts"])
            case "end":
                ended, state = _when(event["ended"]), _state(event["state"])
                signalled = _signalled(event.get("signalled", 0))
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
        signalled=signalled,
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


def _signalled(code: object) -> int:
    if isinstance(code, int) and code in (0, *SIGNALLED):
        return code
    raise ValueError(f"no exit code of a signal: {code!r}")


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
                tuple(check.get("needs", ())),
            )
            for check in event["checks"]
        ),
        cases={host: sets[number] for host, number in event["cases"].items()},
        groups={name: tuple(hosts) for name, hosts in event.get("groups", {}).items()},
        runbook={name: Words(**each) for name, each in event.get("runbook", {}).items()},
    )


def _result(event: _Judged) -> Result:
    Layer.of(event.check)  # raises where the id names no layer
    if not event.findings:
        raise ValueError(f"{event.check} on {event.host} has no finding")
    return Result(
        check=event.check,
        host=event.host,
        seconds=event.seconds,
        retried=event.retried,
        findings=tuple(_finding(event.check, event.host, each) for each in event.findings),
    )


def _finding(check: str, host: str, told: _Finding) -> Finding:
    return Finding(
        check=check,
        host=host,
        subject=told.subject,
        verdict=Verdict(
            status=told.status,
            kind=told.kind,
            reason=told.reason,
            cause=told.cause,
            error=told.error,
            remedies=told.remedies,
            measured=told.measured,
            rule=told.rule,
            hosts=told.hosts,
            figures=told.figures,
            follows=told.follows,
            advisory=told.advisory,
        ),
        bounds=told.bounds,
        evidence=told.evidence,
        unproven_below=told.unproven_below,
    )

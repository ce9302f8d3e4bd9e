"""The event stream of a run: one JSON object a line, appended as things become known.

Written text is cleaned and masked here, so no later reader has to trust a host's words.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast, get_args

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
from commcheck.report.cleaning import clean
from commcheck.report.record import Failure, Plan, PlannedCheck, Record, RunInfo, State

SCHEMA: Final = "commcheck.events/1"

T = TypeVar("T")

Event = dict[str, Any]


def timestamp(when: datetime) -> str:
    """UTC as ``2026-11-29T15:04:05Z``, with microseconds where there are any."""
    return when.astimezone(UTC).isoformat().replace("+00:00", "Z")


# --- writing ------------------------------------------------------------------------------------


def run_event(info: RunInfo) -> Event:
    """The first event of a stream."""
    return {
        "event": "run",
        "schema": SCHEMA,
        "run_id": info.run_id,
        "started": timestamp(info.started),
        "version": info.version,
        "playbook": info.playbook,
        "inventory": list(info.inventory),
        "inventory_digest": info.inventory_digest,
        "limit": info.limit,
        "settings": {name: clean(value) for name, value in info.settings.items()},
        "strict": info.strict,
        **({"noun": info.noun} if info.noun != "host" else {}),
        **(
            {"choice": {name: list(words) for name, words in info.choice.items()}}
            if info.choice
            else {}
        ),
    }


def plan_event(plan: Plan) -> Event:
    """The plan; hosts with the same checks share one list."""
    sets = list(dict.fromkeys(plan.cases.values()))
    index = {checks: number for number, checks in enumerate(sets)}
    return {
        "event": "plan",
        "hosts": list(plan.hosts),
        "checks": [
            {
                "id": check.id,
                "title": _words(check.title),
                "source": check.source,
                "overrides": check.overrides,
                **({"digest": check.digest} if check.digest else {}),
                **({"explained_by": list(check.explained_by)} if check.explained_by else {}),
                **({"contradicts": list(check.contradicts)} if check.contradicts else {}),
            }
            for check in plan.checks
        ],
        "sets": [list(checks) for checks in sets],
        "cases": {host: index[checks] for host, checks in plan.cases.items()},
        **(
            {"groups": {name: list(hosts) for name, hosts in plan.groups.items()}}
            if plan.groups
            else {}
        ),
    }


def host_event(host: str, code: str = "", failure: Failure | None = None) -> Event:
    """A host's session ended: ``code`` is empty where it went well, else the error's code."""
    event = {"event": "host", "host": host, "state": "unreached" if code else "reached",
             "code": code}  # fmt: skip
    if failure is not None:
        event |= {"error": failure.error, "reason": clean(failure.reason),
                  "remedy": clean(failure.remedy)}  # fmt: skip
    return event


def result_event(result: Result) -> Event:
    """A check judged on a host, whole."""
    return {
        "event": "result",
        "check": result.check,
        "host": result.host,
        "seconds": result.seconds,
        **({"retried": result.retried} if result.retried else {}),
        "findings": [_finding(finding) for finding in result.findings],
    }


def note_event(text: str) -> Event:
    """Something the operator should read in the report."""
    return {"event": "note", "text": clean(text)}


def changes_event(changes: Changes) -> Event:
    """What is different from a baseline."""
    return {"event": "changes", **plain(changed.to_json(changes))}


def resumed_event(when: datetime) -> Event:
    """The run goes on: whatever end stands before this was none."""
    return {"event": "resumed", "when": timestamp(when)}


def analysis_event(screen: Iterable[str], facts: Mapping[str, object]) -> Event:
    """What an analysis of files says beside its verdicts."""
    return {"event": "analysis", "screen": [clean(line) for line in screen], "facts": plain(facts)}


def end_event(ended: datetime, state: State) -> Event:
    """The last event but for ``changes``; a stream without it is of a killed run."""
    return {"event": "end", "ended": timestamp(ended), "state": state}


def events_of(record: Record) -> Iterator[Event]:
    """The stream that ``record_from_events`` reads back as this record."""
    yield run_event(record.info)
    yield plan_event(record.plan)
    for host, code in record.reached.items():
        yield host_event(host, code, record.failures.get(host))
    yield from (result_event(result) for result in record.results)
    yield from (note_event(text) for text in record.notes)
    if record.screen or record.facts:
        yield analysis_event(record.screen, record.facts)
    if record.ended is not None:
        yield end_event(record.ended, record.state)
    if record.changes is not None:
        yield changes_event(record.changes)


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encode(event: Mapping[str, Any]) -> bytes:
    """One line of a stream. A lone surrogate becomes its JSON escape, so every text survives."""
    return _ENCODER.encode(event).encode("utf-8", "backslashreplace") + b"\n"


def plain(value: object) -> Any:
    """A measured value as JSON can hold it; what JSON lacks becomes text."""
    kind = type(value)  # the exact types first: nearly all values are of one of them
    if kind is str:
        return clean(value)  # type: ignore[arg-type]  # mypy does not narrow by this
    if kind is int or kind is bool or value is None:
        return value
    match value:
        case int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return clean(value)
        case Mapping():
            return {clean(str(key)): plain(each) for key, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case set() | frozenset():
            return sorted((plain(each) for each in value), key=str)
        case _:
            return clean(str(value))


def _words(words: Words) -> Event:
    return {"en": clean(words.en), "zh": clean(words.zh)}


def _finding(finding: Finding) -> Event:
    verdict = finding.verdict
    return {
        "subject": clean(finding.subject),
        "status": verdict.status,
        "kind": verdict.kind,
        # A reason made of nothing but control sequences must not cost the whole stream.
        "reason": clean(verdict.reason).strip() or "no printable reason",
        "cause": _cause(verdict.cause) if verdict.cause else None,
        "error": verdict.error,
        "remedies": [_remedy(remedy) for remedy in verdict.remedies],
        "measured": plain(verdict.measured),
        "rule": verdict.rule,
        "hosts": list(verdict.hosts),
        **({"figures": [_figure(each) for each in verdict.figures]} if verdict.figures else {}),
        **({"follows": verdict.follows} if verdict.follows else {}),
        "bounds": [
            {"name": each.name, "value": plain(each.value), "origin": clean(each.origin),
             "unit": each.unit}
            for each in finding.bounds
        ],
        "evidence": [_evidence(each) for each in finding.evidence],
        "unproven_below": list(finding.unproven_below),
    }  # fmt: skip


def _figure(figure: Figure) -> Event:
    return {"form": figure.form, "title": _words(figure.title), "data": plain(figure.data)}


def _cause(cause: Cause) -> Event:
    return {
        "slug": cause.slug,
        "title": _words(cause.title),
        "meaning": _words(cause.meaning),
        "remedies": [_remedy(remedy) for remedy in cause.remedies],
    }


def _remedy(remedy: Remedy) -> Event:
    return {
        "command": clean(remedy.command),
        "effect": _words(remedy.effect),
        "precondition": _words(remedy.precondition),
        "who": remedy.who,
    }


def _evidence(evidence: Evidence) -> Event:
    return {
        "key": clean(evidence.key),
        "rc": evidence.rc,
        "seconds": evidence.seconds,
        "head": clean(evidence.head),
        "truncated": evidence.truncated,
        "used": evidence.used,
    }


# --- reading ------------------------------------------------------------------------------------


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
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise RunFolderError(f"no event stream: {type(error).__name__}: {error}") from error


def _parsed(lines: Iterable[str]) -> Iterator[Event]:
    broken = ""
    for number, line in enumerate(lines, start=1):
        if broken:
            raise RunFolderError(broken)
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except json.JSONDecodeError as error:
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
    )


def _read_remedy(event: Event) -> Remedy:
    return Remedy(
        command=event["command"],
        effect=Words(**event["effect"]),
        precondition=Words(**event["precondition"]),
        who=event["who"],
    )

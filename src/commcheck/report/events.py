"""The event stream of a run: one JSON object a line, appended as things become known.

Written text is cleaned and masked here, so no later reader has to trust a host's words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from commcheck.model import (
    Cause,
    Evidence,
    Figure,
    Finding,
    Remedy,
    Result,
    Words,
)
from commcheck.report import changes as changed
from commcheck.report.changes import Changes
from commcheck.report.cleaning import clean
from commcheck.report.jsons import encoded_lines
from commcheck.report.record import Failure, Plan, Record, RunInfo, State

SCHEMA: Final = "commcheck.events/1"

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
                **({"needs": list(check.needs)} if check.needs else {}),
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
        **(
            {"runbook": {name: _words(each) for name, each in plan.runbook.items()}}
            if plan.runbook
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


def end_event(ended: datetime, state: State, signalled: int = 0) -> Event:
    """The last event but for ``changes``; a stream without it is of a killed run."""
    event: Event = {"event": "end", "ended": timestamp(ended), "state": state}
    return event | {"signalled": signalled} if signalled else event


def events_of(record: Record) -> Iterator[Event]:
    """The stream that ``replay.record_from_events`` reads back as this record."""
    yield run_event(record.info)
    yield plan_event(record.plan)
    for host, code in record.reached.items():
        yield host_event(host, code, record.failures.get(host))
    yield from (result_event(result) for result in record.results)
    yield from (note_event(text) for text in record.notes)
    if record.screen or record.facts:
        yield analysis_event(record.screen, record.facts)
    if record.ended is not None:
        yield end_event(record.ended, record.state, record.signalled)
    if record.changes is not None:
        yield changes_event(record.changes)


def encode(event: Mapping[str, Any]) -> bytes:
    """One line of a stream."""
    return encoded_lines((event,))


def plain(value: object) -> Any:
    """A measured value as JSON can hold it; what JSON lacks becomes text."""
    kind = type(value)  # the exact types first: nearly all values are of one of them
    if kind is str:
        return clean(value)  # type: ignore[arg-type]  # mypy does not narrow by this
    if kind is int or kind is bool or value is None:
        return value
    if kind is dict:
        return {clean(str(key)): plain(each) for key, each in value.items()}  # type: ignore[attr-defined]
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
        **({"advisory": True} if verdict.advisory else {}),
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
        **({"everywhere": _words(cause.everywhere)} if cause.everywhere else {}),
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

"""The ``commcheck.results/1`` document: every number that any format shows, as plain data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

from commcheck.diagnose import Diagnosis, Fix, Group, Rung, diagnose
from commcheck.files import lines_of, opened
from commcheck.model import Bound, Finding, Layer, Status
from commcheck.report import changes as changed
from commcheck.report.cleaning import clean
from commcheck.report.events import plain, timestamp
from commcheck.report.jsons import encoded
from commcheck.report.record import Record

SCHEMA: Final = "commcheck.results/1"

Json = dict[str, Any]


def document(record: Record) -> Json:
    """The whole run. Units are in the keys; absent values are ``null``, never left out."""
    before, after = _around(record)
    return {**before, VERDICTS: list(_verdicts(record)), **after}


def written(record: Record) -> Iterator[bytes]:
    """The same as JSON text, in pieces: a verdict a line, so that it is never whole in memory."""
    before, after = _around(record)
    yield b"{\n"
    for name, value in before.items():
        yield b' "%s": %s,\n' % (name.encode(), encoded(value))
    yield f' "{VERDICTS}": ['.encode()
    for number, verdict in enumerate(_verdicts(record)):
        yield (b",\n  " if number else b"\n  ") + encoded(verdict)
    yield b"\n ]"
    for name, value in after.items():
        yield b',\n "%s": %s' % (name.encode(), encoded(value))
    yield b"\n}\n"


def summary_of(record: Record) -> Json:
    """What stands before the verdicts: enough for a message, whatever the fleet."""
    return _around(record)[0]


_LINE_MOST: Final = 64 << 20
"""Characters of a group of settings, or of what thousands of hosts have in common."""


def summary_in(path: Path) -> Json:
    """The same of a written ``results.json``, without its verdicts, which may be large.

    Raises ``OSError``, or ``ValueError`` or ``RecursionError`` where it is no such file.
    """
    lines = []
    with TextIOWrapper(opened(path), encoding="utf-8") as stream:
        for line in lines_of(stream, _LINE_MOST):
            if line.startswith(f' "{VERDICTS}":'):
                break
            lines.append(line)
    return dict(json.loads("".join(lines).rstrip().removesuffix(",") + "}"))


VERDICTS: Final = "verdicts"


def _verdicts(record: Record) -> Iterator[Json]:
    return (_verdict(finding) for result in record.sorted for finding in result.findings)


def _around(record: Record) -> tuple[Json, Json]:
    """What stands before and after the verdicts."""
    diagnosis = diagnose(record)
    before = {
        "schema": SCHEMA,
        "run": _run(record),
        "summary": _summary(record, diagnosis),
        "ladder": [_rung(rung) for rung in diagnosis.ladder],
        "causes": [_group(group) for group in diagnosis.groups],
        "checks": [
            {
                "id": check.id,
                "layer": check.layer.value,
                "title": {"en": clean(check.title.en), "zh": clean(check.title.zh)},
                "source": check.source,
                "overrides": check.overrides,
            }
            for check in record.plan.checks
        ],
    }
    after = {
        "notes": [clean(note) for note in record.notes],
        "changes": plain(changed.to_json(record.changes)) if record.changes else None,
        "facts": plain(record.facts) if record.facts else None,
    }
    return before, after


def _run(record: Record) -> Json:
    info = record.info
    return {
        "id": info.run_id,
        "state": record.state,
        "started": timestamp(info.started),
        "ended": timestamp(record.ended) if record.ended else None,
        "duration_s": record.seconds if record.ended else None,
        "version": info.version,
        "playbook": info.playbook,
        "inventory": list(info.inventory),
        "inventory_digest": info.inventory_digest,
        "limit": info.limit,
        "settings": {name: clean(value) for name, value in info.settings.items()},
        "strict": info.strict,
        "hosts": list(record.plan.hosts),
        "not_reached": {host: code for host, code in record.reached.items() if code},
        "exit_code": record.exit_code,
    }


def _summary(record: Record, diagnosis: Diagnosis) -> Json:
    statuses = Counter(result.status.value for result in record.sorted)
    return {
        "verdict": {
            "status": diagnosis.status.value,
            "layer": diagnosis.layer.value if diagnosis.layer else None,
            "headline": clean(diagnosis.headline),
            "headline_zh": clean(diagnosis.says.zh),
            "more": [clean(sentence) for sentence in diagnosis.more],
            "hosts": list(diagnosis.hosts),
            "cause": diagnosis.cause.slug if diagnosis.cause else None,
            "remedy": clean(diagnosis.fix.text) if diagnosis.fix else None,
            "proven": [clean(words.en) for words in diagnosis.proven],
        },
        "exit_code": record.exit_code,
        "hosts": diagnosis.host_count,
        "hosts_not_judged": list(diagnosis.unjudged),
        "cases": {status.value: statuses[status.value] for status in Status},
    }


def _rung(rung: Rung) -> Json:
    return {
        "layer": rung.layer.value,
        "word": rung.word,
        "cases": dict(sorted(rung.cases.items())),
        "hosts": dict(sorted(rung.hosts.items())),
    }


def _group(group: Group) -> Json:
    return {
        "layer": group.layer.value,
        "check": group.check,
        "status": group.status.value,
        "cause": group.slug,
        "title": {"en": clean(group.title.en), "zh": clean(group.title.zh)},
        "meaning": (
            {"en": clean(group.meaning.en), "zh": clean(group.meaning.zh)}
            if group.meaning
            else None
        ),
        "reason": clean(group.reason),
        "hosts": list(group.hosts),
        "findings": group.findings,
        "remedies": [_fix(fix) for fix in group.fixes],
        "shares": [{"kind": each.kind, "text": clean(each.words.en)} for each in group.shares],
        "consequences": [
            {"check": each.check, "hosts": list(each.hosts), "reason": clean(each.reason)}
            for each in group.follows
        ],
        "speaks_for": [clean(words.en) for words in group.speaks_for],
        "speaks_against": [clean(words.en) for words in group.speaks_against],
    }


def _fix(fix: Fix) -> Json:
    remedy = fix.remedy
    return {
        "command": clean(remedy.command),
        "effect": {"en": clean(remedy.effect.en), "zh": clean(remedy.effect.zh)},
        "precondition": {"en": clean(remedy.precondition.en), "zh": clean(remedy.precondition.zh)},
        "who": remedy.who,
        "hosts": list(fix.hosts),
    }


def _verdict(finding: Finding) -> Json:
    verdict = finding.verdict
    remedy = verdict.remedies[0] if verdict.remedies else None
    subject = clean(finding.subject)
    return {
        "check": finding.check,
        "layer": Layer.of(finding.check).value,
        "subject": f"{finding.host}/{subject}" if subject else finding.host,
        "host": finding.host,
        "hosts": list(verdict.hosts),
        "status": verdict.status,
        "kind": verdict.kind,
        "severity": "advisory" if verdict.status is Status.WARN or verdict.advisory else "blocking",
        "rule": verdict.rule,
        "reason": clean(verdict.reason),
        "cause": verdict.cause.slug if verdict.cause else None,
        "error": verdict.error or None,
        "remedy": clean(remedy.command or remedy.effect.en) if remedy else None,
        "measured": plain(verdict.measured),
        "threshold": [_bound(bound) for bound in finding.bounds],
        "evidence": [clean(each.key) for each in finding.evidence],
        "unproven_below": list(finding.unproven_below),
        "follows": verdict.follows or None,
    }


def _bound(bound: Bound) -> Json:
    return {
        "name": bound.name,
        "value": plain(bound.value),
        "unit": bound.unit,
        "source": clean(bound.origin),
    }

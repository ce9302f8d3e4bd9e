"""The offline analyses leave by the same door as a run: folder, JUnit, HTML, text, exit code."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from commcheck import __version__
from commcheck.model import Result
from commcheck.prepare import new_run_id
from commcheck.report import events
from commcheck.report.folder import RunFolder
from commcheck.report.record import Plan, PlannedCheck, Record, RunInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What an analysis of files found.

    ``checks``: what was asked. ``results``: a result's host is what it is about: a file, a rank, a
    host, or ``@job`` for the whole. ``notes``: what was judged, what was not, and what to turn on.
    ``screen``: the few lines that a person came for. ``facts``: all that was read, as plain JSON.
    """

    checks: tuple[PlannedCheck, ...]
    results: tuple[Result, ...]
    notes: tuple[str, ...] = ()
    screen: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)


def record_of(
    analysis: Analysis,
    what: str,
    sources: Sequence[str],
    *,
    started: datetime,
    ended: datetime,
    settings: Mapping[str, str],
    strict: bool,
) -> Record:
    """The record of an analysis. ``what`` is its name, ``sources`` the files as they were named."""
    cases: dict[str, dict[str, None]] = {}
    for result in analysis.results:
        cases.setdefault(result.host, {})[result.check] = None
    return Record(
        info=RunInfo(
            run_id=new_run_id(started),
            started=started,
            version=__version__,
            playbook=f"analyze {what}",
            inventory=tuple(sources),
            inventory_digest=hashlib.sha256("\0".join(sources).encode()).hexdigest()[:16],
            settings=settings,
            strict=strict,
            noun="file",
        ),
        plan=Plan(
            hosts=tuple(host for host in cases if not host.startswith("@")),
            checks=analysis.checks,
            cases={host: tuple(checks) for host, checks in cases.items()},
        ),
        results=analysis.results,
        notes=analysis.notes,
        ended=ended,
        state="complete",
        reached={host: "" for host in cases if not host.startswith("@")},
        screen=analysis.screen,
        facts=analysis.facts,
    )


def analyse(
    what: str,
    sources: Sequence[str],
    work: Callable[[], Analysis],
    *,
    out: Path,
    settings: Mapping[str, str],
    strict: bool,
) -> tuple[Record, RunFolder]:
    """Do the work, then write its run folder. Bad input raises before anything is written."""
    started = datetime.now(UTC)
    analysis = work()
    record = record_of(
        analysis,
        what,
        sources,
        started=started,
        ended=datetime.now(UTC),
        settings=settings,
        strict=strict,
    )
    folder = RunFolder.create(out, record.info.run_id)
    for event in events.events_of(record):
        folder.event(event)
    return record, folder

"""What an analysis of files found, and the record that it leaves as a run does. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime

from commcheck import __version__
from commcheck.lazy import dataclass
from commcheck.model import Result
from commcheck.report.record import JOB, Plan, PlannedCheck, Record, RunInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What an analysis of files found.

    ``checks``: what was asked. ``results``: a result's host is what it is about: a file, a rank, a
    host, or ``@job`` for the whole. ``notes``: what was judged, what was not, and what to turn on.
    ``screen``: the few lines that a person came for. ``facts``: all that was read, as plain JSON.
    ``noun``: what was counted where that is no file.
    """

    checks: tuple[PlannedCheck, ...]
    results: tuple[Result, ...]
    notes: tuple[str, ...] = ()
    screen: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    noun: str = "file"


def record_of(
    analysis: Analysis,
    what: str,
    sources: Sequence[str],
    *,
    run_id: str,
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
            run_id=run_id,
            started=started,
            version=__version__,
            playbook=f"analyze {what}",
            inventory=tuple(sources),
            inventory_digest=hashlib.sha256("\0".join(sources).encode()).hexdigest()[:16],
            settings=settings,
            strict=strict,
            noun="job" if cases.keys() == {JOB} else analysis.noun,
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

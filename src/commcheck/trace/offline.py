"""Traces on disk to an analysis: files are found, read in several processes, judged, summed up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from commcheck.analysis import Analysis
from commcheck.check import passed
from commcheck.model import Bound, Finding, Kind, Result, Status, Verdict
from commcheck.report.record import JOB, PlannedCheck
from commcheck.trace import causes
from commcheck.trace.facts import JobFacts
from commcheck.trace.job import job_facts
from commcheck.trace.ladder import judge, silent_ranks
from commcheck.trace.lanes import pictured
from commcheck.trace.limits import DECIDED_BY, Limits
from commcheck.trace.manyfiles import Watch
from commcheck.trace.plain import facts_json
from commcheck.trace.rungs import Known
from commcheck.trace.screen import screen
from commcheck.trace.wire import unlike


def analyse_traces(
    paths: Sequence[Path],
    *,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    known: Known = Known(),  # noqa: B008 - frozen
    kernels: tuple[str, ...] = (),
    workers: int = 0,
    watch: Watch | None = None,
) -> Analysis:
    """Analyse the traces of one job: one file a rank, files or folders.

    ``kernels``: patterns of communication kernels beyond the known ones. ``workers``: processes,
    0 for one a core. Raises ``UsageError``, one line a file, where nothing can be read.
    """
    return analysis_of(
        *job_facts(paths, kernels=kernels, workers=workers, watch=watch), limits, known
    )


def analysis_of(
    job: JobFacts, problems: Mapping[str, str], limits: Limits, known: Known
) -> Analysis:
    """The analysis of facts: verdicts on the job, and an error for each file that says nothing."""
    verdicts = pictured(job, judge(job, limits, known))
    results = [_result(JOB, verdicts, limits)]
    silent = silent_ranks(job)
    # Beside one that could not be judged those that could are counted, too.
    for rank in job.ranks if silent or problems else ():
        said = passed(f"{rank.name} was read whole")
        if rank in silent:
            reason = f"{rank.file}: not one communication kernel, though other ranks have some"
            said = _error("NoCommunication", reason)
        results.append(_result(rank.file, (said,), limits))
    for name, problem in problems.items():
        results.append(_result(name, (_error("ParseError", problem),), limits))
    return Analysis(
        checks=(PlannedCheck(causes.CHECK_ID, causes.TITLE),),
        results=tuple(results),
        notes=_notes(job, limits, known),
        screen=screen(job),
        facts=facts_json(job),
    )


def _result(host: str, verdicts: Iterable[Verdict], limits: Limits) -> Result:
    findings = tuple(
        Finding(
            check=causes.CHECK_ID,
            host=host,
            subject="",
            verdict=verdict,
            bounds=_bounds(verdict, limits) if host == JOB else (),
        )
        for verdict in verdicts
    )
    return Result(check=causes.CHECK_ID, host=host, findings=findings)


def _error(error: str, reason: str) -> Verdict:
    return Verdict(status=Status.ERROR, kind=Kind.CHECK, error=error, reason=reason)


def _bounds(verdict: Verdict, limits: Limits) -> tuple[Bound, ...]:
    """Of a fault the limits that tell it, else all."""
    named = {each.name: each for each in fields(Limits)}
    bounds = []
    for name in DECIDED_BY.get(verdict.cause.slug, ()) if verdict.cause else named:
        each, value = named[name], getattr(limits, name)
        source = each.metadata["source"]
        origin = f"default ({source})" if value == each.default else "the command line"
        bounds.append(Bound(name, value, origin, each.metadata["unit"]))
    return tuple(bounds)


def _notes(job: JobFacts, limits: Limits, known: Known) -> tuple[str, ...]:
    notes = [*job.notes]
    by_note: dict[str, list[str]] = {}
    for rank in job.ranks:
        for note in rank.notes:
            by_note.setdefault(note, []).append(rank.name)
    notes += [
        f"{', '.join(names[:4])}{' and more' if len(names) > 4 else ''}: {note}"
        for note, names in by_note.items()
    ]
    if len(job.ranks) == 1 and (job.world or 0) > 1:
        notes.append(
            f"one of {job.world} ranks: late ranks cannot be told from a slow wire; give the "
            "traces of all ranks"
        )
    if wires := unlike(job, limits, known):
        notes.append(wires)
    return tuple(notes)

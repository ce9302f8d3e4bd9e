"""The traces of one job before and after a change: the new ones judged, and what went away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from commcheck.analysis import Analysis
from commcheck.trace.compare import compare
from commcheck.trace.job import job_facts
from commcheck.trace.limits import Limits
from commcheck.trace.manyfiles import Watch
from commcheck.trace.offline import analysis_of
from commcheck.trace.rungs import Known


def analyse_change(
    before: Sequence[Path],
    after: Sequence[Path],
    *,
    known: Known,
    kernels: tuple[str, ...] = (),
    workers: int = 0,
    watch: Watch | None = None,
) -> Analysis:
    """The analysis of ``after``, with both steps drawn and the difference told.

    Raises ``UsageError`` where one of the two holds no trace.
    """
    old, _ = job_facts(before, kernels=kernels, workers=workers, watch=watch)
    new, problems = job_facts(after, kernels=kernels, workers=workers, watch=watch)
    analysis = analysis_of(new, problems, Limits(), known)
    change = compare(old, new)
    first, *rest = analysis.results
    finding, *others = first.findings
    pictured = replace(finding, verdict=replace(finding.verdict, figures=change.figures))
    return replace(
        analysis,
        results=(replace(first, findings=(pictured, *others)), *rest),
        screen=(*analysis.screen, "", "before -> after, a step:", *change.lines),
    )

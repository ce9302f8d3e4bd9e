"""What was read of each source, and of all of them together: one job, one trace a rank."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from commcheck.errors import UsageError
from commcheck.lazy import dataclass
from commcheck.trace import hccltable, kerneltable, steptable
from commcheck.trace.facts import JobFacts, RankFacts
from commcheck.trace.ranks import job_of
from commcheck.trace.read import read
from commcheck.trace.source import Foreign, Source
from commcheck.trace.steps import measure
from commcheck.trace.store import Progress


@dataclass(frozen=True, slots=True)
class Read:
    """One source as it was read: facts, the busiest device first, or why there are none."""

    path: Source
    ranks: tuple[RankFacts, ...] = ()
    problem: str = ""


def read_one(path: Source, kernels: tuple[str, ...], progress: Progress) -> Read:
    """One trace, or a table of steps where the name says so; what is wrong is told, not raised."""
    try:
        ranks = _read(path, kernels, progress)
    except Foreign as error:
        return Read(path, problem=str(error))
    if not ranks:
        return Read(
            path, problem=str(Foreign(str(path), "holds no device event and no collective"))
        )
    return Read(path, ranks)


def _read(path: Source, kernels: tuple[str, ...], progress: Progress) -> tuple[RankFacts, ...]:
    if not isinstance(path, Path):
        return measure(read(path, progress, kernels))
    if path.name in steptable.NAMES:
        return steptable.read(path)
    if path.name == hccltable.NAME:
        what = "tells of no step; give the folder it lies in, with the trace or table beside it"
        raise Foreign(str(path), what)
    if path.name in kerneltable.NAMES:
        ranks = kerneltable.read(path)
    else:
        ranks = measure(read(path, progress, kernels))
    hccl = hccltable.beside(path) if any(rank.layout == "ascend" for rank in ranks) else None
    return tuple(replace(rank, hccl=hccl) for rank in ranks) if hccl else ranks


def gathered(
    done: Sequence[Read], searched: Collection[Source] = ()
) -> tuple[JobFacts, Mapping[str, str]]:
    """The facts of a job, and by name why a source could not be read.

    ``searched``: found in a folder, where a file may be no trace. Raises ``UsageError`` where no
    source could be read.
    """
    problems = {
        each.path: each.problem for each in done if each.problem and each.path not in searched
    }
    ranks = [rank for each in done for rank in each.ranks[:1]]
    if not ranks:
        told = [each.problem for each in done if each.problem]
        raise UsageError(*(told[:20] or ["error: no trace among the files [trace]"]))
    notes = [
        f"{each.path.name} has {len(each.ranks)} devices: the busiest is judged"
        for each in done
        if len(each.ranks) > 1 and each.ranks[0].layout != "table"
    ]
    ranks += [rank for each in done for rank in each.ranks[1:] if rank.layout == "table"]
    job = job_of(_numbered(ranks, notes))
    job = replace(job, notes=(*notes, *job.notes))
    return job, {path.name: problem for path, problem in problems.items()}


def _numbered(ranks: Sequence[RankFacts], notes: list[str]) -> list[RankFacts]:
    """One trace a rank; files that tell no rank are numbered in their order, with a note."""
    if len(ranks) > 1 and all(rank.rank is None for rank in ranks):
        notes.append("no file tells its rank: they are numbered in the order of their names")
        return [
            replace(rank, rank=number)
            for number, rank in enumerate(sorted(ranks, key=lambda each: each.file))
        ]
    last: dict[object, RankFacts] = {}
    for rank in sorted(ranks, key=lambda each: each.file):
        key = rank.file if rank.rank is None else rank.rank
        if key in last:
            notes.append(
                f"{rank.name} has several traces: {rank.file} is judged, {last[key].file} is not"
            )
        last[key] = rank
    return list(last.values())

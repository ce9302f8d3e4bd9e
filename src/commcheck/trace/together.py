"""What was read of each source, and of all of them together: one job, one trace a rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

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
    if steptable.is_one(path.name):
        return steptable.read(path)
    if hccltable.is_one(path.name):
        raise Foreign(
            str(path),
            "tells of no step; give the folder it lies in, with trace_view.json or "
            "step_trace_time.csv of the ranks beside it, or cluster_step_trace_time.csv",
        )
    if kerneltable.is_one(path.name):
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
    names = _names([each.path for each in done])
    problems = {
        names[each.path]: each.problem
        for each in done
        if each.problem and each.path not in searched
    }
    ranks = [replace(rank, file=names[each.path]) for each in done for rank in each.ranks[:1]]
    if not ranks:
        told = [each.problem for each in done if each.problem]
        raise UsageError(*(told[:20] or ["error: no trace among the files [trace]"]))
    notes = [
        f"{names[each.path]} has {len(each.ranks)} devices: the busiest is judged"
        for each in done
        if len(each.ranks) > 1 and each.ranks[0].layout != "table"
    ]
    ranks += [rank for each in done for rank in each.ranks[1:] if rank.layout == "table"]
    job = job_of(_one_a_rank(ranks, notes))
    job = replace(job, notes=(*notes, *job.notes))
    return job, problems


def _names(paths: Sequence[Source]) -> Mapping[Source, str]:
    """What messages call each: its name, with as many folders before it as tell it from others.

    torch_npu calls all traces alike, and so do scripts that make a folder for each rank.
    """
    parts = {path: PurePath(str(path)).parts for path in dict.fromkeys(paths)}
    names: dict[Source, str] = {path: path.name for path in parts}
    deepest = max((len(mine) for mine in parts.values()), default=0)
    for depth in range(2, deepest + 1):
        counts = Counter(names.values())
        alike = [path for path in names if counts[names[path]] > 1]
        for path in alike:
            names[path] = str(PurePath(*parts[path][-depth:]))
        if not alike:
            break
    return names


def _one_a_rank(ranks: Sequence[RankFacts], notes: list[str]) -> list[RankFacts]:
    """Of each rank the trace that was taken last. Files that tell no rank are ranks of their own,
    called by their names: any number would be taken for the job's."""
    if len(ranks) > 1 and all(rank.rank is None for rank in ranks):
        notes.append("no file tells its rank: each is called by its name")
        return list(ranks)
    last: dict[object, RankFacts] = {}
    older: list[str] = []
    for rank in sorted(ranks, key=lambda each: (each.began_ns, each.file)):
        key = rank.file if rank.rank is None else rank.rank
        if key in last:
            told = f"{rank.file} is judged, {last[key].file} is not"
            older.append(f"{rank.name} has several traces: {told}")
        last[key] = rank
    if older:
        more = f"; {len(older) - 1} more that are not the newest of their rank are not judged"
        notes.append(older[-1] + (more if len(older) > 1 else ""))
    return list(last.values())

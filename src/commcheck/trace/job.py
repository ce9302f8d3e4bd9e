"""Files and folders to the facts of one job: which files are traces, and of which rank each is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from commcheck.errors import UsageError
from commcheck.trace import steptable
from commcheck.trace.facts import JobFacts, RankFacts
from commcheck.trace.manyfiles import Watch, read_all
from commcheck.trace.ranks import job_of

_SUFFIXES: Final = (".json", ".json.gz")


def job_facts(
    paths: Sequence[Path],
    *,
    kernels: tuple[str, ...] = (),
    workers: int = 0,
    watch: Watch | None = None,
) -> tuple[JobFacts, Mapping[str, str]]:
    """The facts of a job, and by file name why a file could not be read.

    Raises ``UsageError`` where no file could.
    """
    try:
        re.compile("|".join(kernels))
    except re.error as error:
        raise UsageError(f"error: {kernels}: no pattern: {error} [trace]") from None
    found, searched = _find(paths)
    done = read_all(found, kernels, workers, watch)
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


def _find(paths: Sequence[Path]) -> tuple[list[Path], set[Path]]:
    """The files to read, and which of them a folder was searched for: those may be no traces."""
    named: dict[Path, None] = {}
    searched: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: error: no such file or folder [trace]")
        if not path.is_dir():
            named[path] = None
            continue
        inside = sorted(
            each
            for each in path.rglob("*")
            if each.is_file() and (each.name.endswith(_SUFFIXES) or each.name in steptable.NAMES)
        )
        views = [each for each in inside if each.name.startswith("trace_view.json")]
        chosen = views or [each for each in inside if each.name in steptable.NAMES] or inside
        if not chosen:
            raise UsageError(f"{path}: error: no .json or .json.gz below this folder [trace]")
        named.update(dict.fromkeys(chosen))
        searched.update(chosen)
    return list(named), searched


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

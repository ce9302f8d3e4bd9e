"""Files and folders to the facts of one job: which files are traces, and of which rank each is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from commcheck.errors import UsageError
from commcheck.report.find import files_below
from commcheck.trace import hccltable, kerneltable, steptable
from commcheck.trace.facts import JobFacts
from commcheck.trace.manyfiles import Watch, read_all
from commcheck.trace.read import rank_beside
from commcheck.trace.together import gathered
from commcheck.trace.unexported import OF_MSPROF, tables_alone, unexported, unfinished

_SUFFIXES: Final = (".json", ".json.gz")
_TOLD_MOST: Final = 3
_TABLES: Final = (steptable.is_one, kerneltable.is_one)
"""Of tables, too, the first kind tells more."""


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
    found, searched, raw = _find(paths)
    job, problems = gathered(read_all(found, kernels, workers, watch), searched)
    read = {rank.rank for rank in job.ranks} - {None}
    # Of a rank that was read, too, it is that of another run, and so it is where none is missing.
    is_whole = job.world is not None and len(job.ranks) >= job.world
    left = {
        each.name: problem
        for each, problem in raw.items()
        if rank_beside(each / "FRAMEWORK") not in read and not (is_whole and each.suffix == ".tmp")
    }
    return job, {**problems, **left}


def _find(paths: Sequence[Path]) -> tuple[list[Path], set[Path], Mapping[Path, str]]:
    """The files to read, which of them a folder was searched for, since those may be no traces, and
    why folders of a profiler hold none."""
    named: dict[Path, None] = {}
    searched: set[Path] = set()
    raw: dict[Path, str] = {}
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: error: no such file or folder [trace]")
        if not path.is_dir():
            named[path] = None
            continue
        below = files_below(path)
        inside = [
            each
            for each in below
            if each.name.endswith(_SUFFIXES) or any(is_one(each.name) for is_one in _TABLES)
        ]
        mine = dict(unexported(path))
        chosen = [each for each in _best(inside) if not mine.keys() & set(each.parents)]
        mine |= unfinished(below) | tables_alone(inside, chosen)
        raw.update(mine)
        if not chosen and not mine:
            raise UsageError(f"{path}: error: no .json or .json.gz below this folder [trace]")
        named.update(dict.fromkeys(chosen))
        searched.update(chosen)
    if raw and not named:
        told = list(raw.values())[:_TOLD_MOST]
        more = [f"error: {len(raw) - len(told)} more are not exported [trace]"]
        raise UsageError(*told, *(more if len(raw) > len(told) else ()))
    return list(named), searched, raw


def _best(inside: Sequence[Path]) -> list[Path]:
    """Of what torch_npu leaves in a folder what tells most; else all that may be traces."""
    views = [each for each in inside if each.name.startswith("trace_view.json")]
    views = views or [each for each in inside if OF_MSPROF.fullmatch(each.name)]
    for is_one in _TABLES:
        views = views or [each for each in inside if is_one(each.name)]
    # Where nothing else is there, these say what is missing.
    return views or [each for each in inside if not hccltable.is_one(each.name)] or list(inside)

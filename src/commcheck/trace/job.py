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
from commcheck.trace.together import gathered

_SUFFIXES: Final = (".json", ".json.gz")
_TABLES: Final = (*steptable.NAMES, *kerneltable.NAMES)


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
    return gathered(read_all(found, kernels, workers, watch), searched)


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
        inside = [
            each
            for each in files_below(path)
            if each.name.endswith(_SUFFIXES) or each.name in _TABLES
        ]
        chosen = _best(inside)
        if not chosen:
            raise UsageError(f"{path}: error: no .json or .json.gz below this folder [trace]")
        named.update(dict.fromkeys(chosen))
        searched.update(chosen)
    return list(named), searched


def _best(inside: Sequence[Path]) -> list[Path]:
    """Of what torch_npu leaves in a folder what tells most; else all that may be traces."""
    views = [each for each in inside if each.name.startswith("trace_view.json")]
    for names in (steptable.NAMES, kerneltable.NAMES):
        views = views or [each for each in inside if each.name in names]
    return views or [each for each in inside if each.name != hccltable.NAME]

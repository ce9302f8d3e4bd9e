"""Which run is meant: an id, a unique beginning of one, ``last``, ``last-green``."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from commcheck.errors import RunFolderError
from commcheck.files import opened
from commcheck.lazy import dataclass, regex

EVENTS: Final = "events.ndjson"
RESULTS: Final = "results.json"
RESULTS_MOST: Final = 1 << 30
"""Bytes; ten thousand hosts leave less than half of it."""
LATEST: Final = "latest"
LAST: Final = "last"
"""What an operator writes for the latest run."""

LAST_GREEN: Final = "last-green"
"""The latest run that ended by itself with exit code 0."""

_BEGUN: Final = b'{"event":"run",'
_FIRST_MOST: Final = 1 << 20
"""Bytes of a run's first event."""

_RUN_ID: Final = regex(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}")


class NoneYet(RunFolderError):
    """No run came so far as it is asked for: a new site's first runs have none before them."""


class NotBegun(NoneYet):
    """The run was killed before it wrote anything: nobody was asked yet."""


def run_ids(base: Path) -> tuple[str, ...]:
    """The runs in a folder, the oldest first. Raises ``RunFolderError`` where there is none."""
    try:
        return tuple(
            sorted(
                path.name
                for path in base.iterdir()
                if not path.is_symlink() and (path / EVENTS).is_file()
            )
        )
    except OSError as error:
        kind = NoneYet if isinstance(error, FileNotFoundError) else RunFolderError
        raise kind(f"{base}: no folder of runs: {error.strerror}") from error


def files_below(folder: Path) -> list[Path]:
    """The files below a folder that somebody names, sorted, but for those of commcheck's own runs.

    A run's runbook quotes the errors that logs end with, and its frames are what hosts answered:
    whoever reads logs where ``reports/`` stands would read them as the job's.
    """
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        if EVENTS in names and _begins_a_run(Path(parent, EVENTS)):
            folders.clear()
            continue
        paths = (Path(parent, name) for name in names)
        found += (path for path in paths if path.is_file())
    return sorted(found)


def _begins_a_run(events: Path) -> bool:
    try:
        with opened(events) as file:
            return file.read(len(_BEGUN)) in (b"", _BEGUN)
    except OSError:
        return False  # whoever reads it says so


def find(name: str, base: Path, *, of_hosts: bool = False) -> str:
    """The id of the run in ``base`` that ``name`` means.

    ``of_hosts``: ``last`` and ``last-green`` pass over analyses of files, which asked no host.

    Raises ``RunFolderError`` where there is none, ``NoneYet`` where that is of ``last`` and
    ``last-green``, or where there is more than one.
    """
    runs = run_ids(base)
    if name == LAST:
        return _last(runs, base, of_hosts=of_hosts)
    if name == LAST_GREEN:
        for run in reversed(runs):
            if _green(base / run) and not (of_hosts and _is_analysis(base / run)):
                return run
        raise NoneYet(f"no run in {base} ended with exit code 0")
    matching = [run for run in runs if run == name] or [
        run for run in runs if name and run.startswith(name)
    ]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        latest = f", the latest is {runs[-1]}" if runs else ""
        raise RunFolderError(f"no run {name!r} in {base}{latest}")
    raise RunFolderError(f"{name!r} could be any of {', '.join(matching[:5])}")


def last_green(base: Path, hosts: Collection[str], checks: Collection[str]) -> str:
    """The id of the green run that has most cases in common with one of ``hosts`` and ``checks``.

    Of several the newest: somebody's look at one host is no baseline of a fleet. An analysis of
    files is none. Raises ``RunFolderError``, ``NoneYet`` where no green run has any in common.
    """
    best, most = "", 0
    for run in reversed(run_ids(base)):
        green = _green(base / run)
        if green is None or _is_analysis(base / run):
            continue
        common = len(green.hosts.intersection(hosts)) * len(green.checks.intersection(checks))
        if common > most:
            best, most = run, common
        if most == len(hosts) * len(checks):
            break
    if not best:
        raise NoneYet(f"no run in {base} that asked these hosts the same ended with exit code 0")
    return best


def _last(runs: Sequence[str], base: Path, *, of_hosts: bool) -> str:
    """The newest run, by its link; never an older one in the place of one that left nothing."""
    latest = base / LATEST
    linked = latest.readlink().name if latest.is_symlink() else ""
    newest_first = [*([linked] if linked in runs else []), *reversed(runs)]
    meant = (run for run in newest_first if not (of_hosts and _is_analysis(base / run)))
    newest = next(meant, "")
    begun = sorted(
        path.name
        for path in base.iterdir()
        if _RUN_ID.fullmatch(path.name) and not (path / EVENTS).exists() and path.is_dir()
    )
    if begun and begun[-1] > newest:
        raise NotBegun(f"{base / begun[-1]}: the latest run was killed before it wrote anything")
    if not newest:
        raise NoneYet(f"no run {LAST!r} in {base}")
    return newest


def _is_analysis(run: Path) -> bool:
    """True where its first event says that files were judged, and no host was asked."""
    try:
        with opened(run / EVENTS) as file:
            return bool(json.loads(file.readline(_FIRST_MOST)).get("noun", "host") != "host")
    except (OSError, ValueError, AttributeError, RecursionError):
        return False  # killed, or damaged: who opens it says so


@dataclass(frozen=True, slots=True)
class _Green:
    """What a green run asked of whom; of an analysis the files are its hosts."""

    hosts: frozenset[str]
    checks: frozenset[str]


def _green(run: Path) -> _Green | None:
    """What its results say of it, or None where it is not known to be green."""
    from commcheck.report.document import summary_in  # what only this needs is much to load

    try:
        told = summary_in(run / RESULTS)
        if told["run"]["state"] != "complete" or told["run"]["exit_code"] != 0:
            return None
        return _Green(frozenset(told["run"]["hosts"]), frozenset(c["id"] for c in told["checks"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None  # killed, or of another time

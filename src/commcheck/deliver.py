"""How a run begins to write and how its reports leave: one door for every command that has any."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from commcheck.console import columns, say, warn
from commcheck.diagnose import diagnose
from commcheck.errors import RunFolderError
from commcheck.files import read_whole
from commcheck.lazy import dataclass
from commcheck.model import Status
from commcheck.report import events, text
from commcheck.report.changes import Changes, Json
from commcheck.report.diff import diff
from commcheck.report.document import SCHEMA, document, summary_in
from commcheck.report.drain import commands
from commcheck.report.find import RESULTS, RESULTS_MOST, run_ids
from commcheck.report.folder import RunFolder
from commcheck.report.junit import By
from commcheck.report.lines import NO_EDGE
from commcheck.report.progress import Progress, progress_on
from commcheck.report.ranges import fold_hosts
from commcheck.report.record import Record
from commcheck.report.words import RUNBOOK, Lang

if TYPE_CHECKING:
    from commcheck.report.hooks import Hook


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Where reports go, and what stdout carries: ``form`` is text, json or hosts."""

    out: Path
    junit: Path | None = None
    form: str = "text"
    color: str = "auto"
    runbook_url: str = RUNBOOK
    junit_by: By = "host"
    lang: Lang = "en"
    notify: tuple[Hook, ...] = ()
    drain_command: str = ""

    def clear(self) -> None:
        """Former JUnit files go away before all else: stale green results are the worst kind."""
        if self.junit:
            RunFolder.clear_junit(self.junit)

    def deliver(self, record: Record, folder: RunFolder) -> None:
        """Write every report into the run folder, and the one that was asked for to stdout."""
        try:
            folder.render(record, self.runbook_url, lang=self.lang, junit_by=self.junit_by)
            if self.junit:
                folder.copy_junit(self.junit)
        finally:
            self._show(record, folder)  # also where the disk is full: it is what was come for
        if self.notify:
            self._notify(record, folder)

    def _show(self, record: Record, folder: RunFolder) -> None:
        if self.form == "json":
            say(json.dumps(document(record), ensure_ascii=False, indent=1))
        elif self.form == "hosts":
            if hosts := failing_hosts(record):
                say(fold_hosts(hosts))
        else:
            look = look_of(self.color)
            say(
                text.render(
                    record,
                    folder.path,
                    unicode=look.glyphs,
                    color=look.colour,
                    width=look.width,
                    runbook_url=self.runbook_url,
                    lang=self.lang,
                    drain=tuple(commands(record, self.drain_command)),
                )
            )

    def _notify(self, record: Record, folder: RunFolder) -> None:
        from commcheck.report.hooks import due, send

        before = self._before(record, folder)
        for hook in self.notify:
            if due(hook, record, before) and (wrong := send(hook, record)):
                warn(f"not notified: {wrong}")

    def _before(self, record: Record, folder: RunFolder) -> Json | None:
        """What the last run of the same playbook on the same hosts said, if there was one."""
        info = record.info
        mine = (info.playbook, list(info.inventory), info.limit)
        for run in reversed(run_ids(self.out)):
            if run >= folder.path.name:
                continue
            try:
                told = summary_in(self.out / run / RESULTS)
                if tuple(told["run"][each] for each in ("playbook", "inventory", "limit")) == mine:
                    return told
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                continue  # killed, or of another time
        return None


def look_of(color: str) -> text.Look:
    """What this stdout can show. ``color``: auto, always or never."""
    # Who sets COLUMNS knows; of a pipe nobody does, and the terminal behind stderr is not its.
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = columns(NO_EDGE) if known else NO_EDGE
    return text.Look(
        glyphs="utf" in (sys.stdout.encoding or "").lower(),
        colour=color == "always"
        or (color == "auto" and sys.stdout.isatty() and not os.environ.get("NO_COLOR")),
        width=width,
    )


def failing_hosts(record: Record) -> tuple[str, ...]:
    """The hosts on which something is proven wrong: what a scheduler should drain."""
    groups = diagnose(record).groups
    hosts = {host for each in groups if each.status is Status.FAIL for host in each.hosts}
    return tuple(host for host in record.plan.hosts if host in hosts)


def progress(*, no_progress: bool, quiet: bool) -> Progress:
    """What the operator sees on stderr meanwhile."""
    live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not no_progress
    return progress_on(sys.stderr, live=live, quiet=quiet)


# --- against a baseline -------------------------------------------------------------------------


def load_document(name: str, out: Path, *, of_hosts: bool = False) -> Json:
    """The results of a run, by its name or folder, or those of a saved ``results.json``.

    ``of_hosts``: as in ``find``. Raises ``RunFolderError``.
    """
    if not Path(name).is_file():
        return document(RunFolder.open(name, out, of_hosts=of_hosts).record())
    try:
        found: Json = dict(json.loads(read_whole(name, RESULTS_MOST)))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        why = getattr(error, "strerror", None) or error
        raise RunFolderError(f"{name}: cannot be read: {why}") from error
    if found.get("schema") != SCHEMA:
        raise RunFolderError(f"{name}: error: wanted a {SCHEMA} document [schema]")
    return found


def differences(old: Json, new: Json) -> Changes:
    """Between two documents. Raises ``RunFolderError`` where one has not the form of results."""
    try:
        return diff(old, new)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RunFolderError(
            f"these results cannot be compared, one has another form: {error!r:.200}"
        ) from error


def compared(record: Record, baseline: Json, folder: RunFolder) -> Record:
    """The record with what is different from a baseline, which is kept in the folder as well."""
    changes = differences(baseline, document(record))
    folder.event(events.changes_event(changes))
    return replace(record, changes=changes)

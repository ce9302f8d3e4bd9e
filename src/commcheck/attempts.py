"""How a run begins: anew, where a killed one ended, or with what did not pass in another."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from commcheck import __version__
from commcheck.deliver import Delivery, compared, load_document
from commcheck.diagnose import hosts_of
from commcheck.errors import RunFolderError
from commcheck.inventory import snapshot
from commcheck.lazy import dataclass
from commcheck.model import Finding, Kind, Status
from commcheck.plan import Climb
from commcheck.prepare import Choice, Prepared, new_run_id, plan_of
from commcheck.report.changes import Json
from commcheck.report.counts import many
from commcheck.report.find import LAST, LAST_GREEN, NoneYet, NotBegun, last_green
from commcheck.report.folder import RunFolder
from commcheck.report.record import Failure, Plan, Record, RunInfo
from commcheck.report.shapes import doubted, misfit
from commcheck.report.words import folded, utc
from commcheck.stored import Stored, differences, of_passed, of_run

_ASKED_AGAIN = frozenset({Kind.UNDECIDABLE, Kind.BUSY, Kind.WAIVED})
"""A waiver may have ended since: what was waived would then be told of a host that is mended."""


@dataclass(frozen=True, slots=True)
class Before:
    """The run that this one goes on from. ``resumes``: in its folder; else with its troubles."""

    folder: RunFolder
    record: Record
    resumes: bool

    @property
    def run_id(self) -> str:
        """Its id."""
        return self.record.info.run_id

    @property
    def settings(self) -> dict[str, str]:
        """For the report of a new run."""
        return {} if self.resumes else {"again": self.run_id}

    @property
    def is_over(self) -> bool:
        """True where nothing is left to go on with."""
        return self.resumes and self.record.state == "complete"

    def stored(self, prepared: Prepared, choice: Choice, *, strict: bool) -> Stored:
        """What need not be asked. ``strict``: a warning fails now.

        Raises ``RunFolderError`` where a resumed run asked otherwise, or the run is damaged.
        """
        with doubted([self.record]):
            return self._stored(prepared, choice, strict=strict)

    def _stored(self, prepared: Prepared, choice: Choice, *, strict: bool) -> Stored:
        if not self.resumes:
            passed = passed_hosts(self.record, strict=strict)
            return of_passed(passed, prepared.climb.hosts, self.folder.frames)
        found = list(differences(self.record, prepared, plan_of(prepared), choice.limit))
        if found:
            raise RunFolderError(
                f"error: {self.run_id} cannot go on, it asked something else [resume]",
                *(f"  {each}" for each in found),
            )
        return of_run(self.record, prepared.climb.hosts, self.folder.frames)

    def note(self, prepared: Prepared, stored: Stored) -> str:
        """What the report says of it."""
        hosts = [plan.host.name for plan in prepared.climb.hosts]
        asked = [host for host in hosts if host not in stored.ended]
        known = len(hosts) - len(asked)
        if self.resumes:
            return f"resumed: {known:,} of {many(len(hosts), 'host')} had ended and were kept"
        return (
            f"again after {self.run_id}, of {utc(self.record.info.started)}: "
            f"{many(known, 'host')} passed then and answer from that; "
            f"asked: {folded(asked, 300) or 'none'}"
        )


def before(resume: str, again: str, out: Path, *, hold: bool) -> Before | None:
    """The run that ``--resume`` or ``--again`` names, or None where neither is given.

    ``hold``: a resumed run is written to from now on. Raises ``RunFolderError``, ``NotBegun``
    where there is nothing to go on with.
    """
    if not resume and not again:
        return None
    if resume and again:
        raise RunFolderError("error: --resume and --again exclude each other [usage]")
    folder = RunFolder.open(resume or again, out, of_hosts=True)
    if resume and hold:
        folder.hold()
        if folder.is_empty:
            raise NotBegun(f"{folder.path}: the run was killed before it began")
    record = folder.record()
    if record.info.noun != "host":
        raise RunFolderError(f"{folder.path}: an analysis of files: no host was asked in it")
    # What hosts are asked rests on these; the rest is looked at only where it does harm.
    told = (record.info, record.plan, record.reached, record.failures)
    kinds = (RunInfo, Plan, dict[str, str], dict[str, Failure])
    for value, kind in zip(told, kinds, strict=True):
        if wrong := misfit(value, kind):
            raise RunFolderError(f"{folder.path}: this is no whole run: {wrong}")
    return Before(folder, record, bool(resume))


def passed_hosts(record: Record, *, strict: bool = False) -> tuple[str, ...]:
    """The hosts of which nothing failed or was waived, and everything was judged.

    ``strict``: a warning fails now; where it does, or did then, no warning either. A verdict on a
    group that names no hosts speaks of all of them.
    """
    wrong: set[str] = set()
    for result in record.sorted:
        for finding in result.findings:
            if _is_trouble(finding, strict=strict or record.info.strict):
                wrong.update(
                    record.plan.hosts
                    if finding.host.startswith("@") and not finding.verdict.hosts
                    else hosts_of(finding)
                )
    return tuple(host for host in record.plan.hosts if host not in wrong)


def _is_trouble(finding: Finding, *, strict: bool) -> bool:
    verdict = finding.verdict
    return (
        verdict.status in (Status.FAIL, Status.ERROR)
        or verdict.kind in _ASKED_AGAIN
        # Of another host's fault perhaps: what it told then is no longer so when that is mended.
        or bool(verdict.follows)
        or (strict and verdict.status is Status.WARN)
    )


# --- beginning and ending -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attempt:
    """A run that has a folder and may write to it."""

    info: RunInfo
    folder: RunFolder
    baseline: Json | None
    note: str = ""  # what the operator should know of the baseline

    def finish(self, record: Record, delivery: Delivery) -> int:
        """Compare, write and show the reports. The exit code is the record's."""
        if self.baseline is not None:
            record = compared(record, self.baseline, self.folder)
        with doubted([record]):
            delivery.deliver(record, self.folder)
            return record.exit_code


def begin(
    prepared: Prepared,
    choice: Choice,
    settings: Mapping[str, Any],
    delivery: Delivery,
    *,
    strict: bool = False,
    baseline: str = "",
    resumes: Before | None = None,
) -> Attempt:
    """Open the folder of a new run, or that of one that goes on. ``settings``: for the report.

    Raises ``UsageError`` where a baseline that was named is none, or nothing can be written.
    """
    if resumes is not None:
        baseline = baseline or resumes.record.info.settings.get("baseline", "")
    document, note = _baseline(baseline, delivery.out, prepared.climb)
    if resumes is not None:
        delivery.clear()
        resumes.folder.keep_inventory(_kept(prepared))
        return Attempt(resumes.record.info, resumes.folder, document, note)
    if document is not None:
        settings = {**settings, "baseline": document["run"]["id"]}
    now = datetime.now(UTC)
    info = RunInfo(
        run_id=new_run_id(now),
        started=now,
        version=__version__,
        playbook=prepared.playbook.name,
        inventory=prepared.inventory.sources,
        inventory_digest=prepared.inventory.digest,
        limit=choice.limit,
        settings={
            name: str(value)
            for name, value in settings.items()
            if value not in (None, (), False, "")
        },
        strict=strict,
        choice=choice.words(),
    )
    folder = RunFolder.create(delivery.out, info.run_id)
    folder.hold()
    folder.keep_inventory(_kept(prepared))
    delivery.clear()
    return Attempt(info, folder, document, note)


def _baseline(name: str, out: Path, climb: Climb) -> tuple[Json | None, str]:
    """The results to compare with, or why there are none yet: a first run is no mistake."""
    if not name:
        return None, ""
    try:
        if name == LAST_GREEN:
            hosts = [plan.host.name for plan in climb.hosts]
            return load_document(last_green(out, hosts, [c.id for c in climb.checks]), out), ""
        return load_document(name, out, of_hosts=True), ""
    except NoneYet as error:
        if name not in (LAST, LAST_GREEN):
            raise
        return None, f"no baseline yet: {error}"


def _kept(prepared: Prepared) -> Json:
    """The inventory as far as verdicts rest on it, and which of its hosts were selected."""
    used = {
        name
        for play in prepared.playbook.plays
        for entry in play.checks
        for when in entry.when
        for name in when.var
    }
    return {**snapshot.take(prepared.inventory, used), "selected": list(prepared.selected)}

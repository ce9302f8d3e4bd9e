"""Waivers: a known fault of a check on some hosts, put up with until a date, for a reason.

The check still runs. A fail or a warning is waived, never an error: what is not known cannot be
accepted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Final

from commcheck.check_fields import check_name
from commcheck.discover import FoundCheck
from commcheck.errors import PlaybookError, Position
from commcheck.fields import Fields
from commcheck.inventory.declared import MAX_ERRORS, Notes, Refused
from commcheck.lazy import dataclass
from commcheck.model import Kind, Layer, Result, Status, Verdict
from commcheck.strict_yaml import Node, compose, read_file

REQUIRED: Final = ("check", "hosts", "until", "reason")
KEYS: Final = (*REQUIRED, "owner")

MIN_REASON: Final = 8
"""Characters: "RMA" alone tells nobody anything in half a year."""


@dataclass(frozen=True, slots=True)
class Waiver:
    """``check`` is an id or ``<layer>.*``; ``hosts`` a pattern; ``until`` the last day it holds."""

    check: str
    hosts: str
    until: date
    reason: str
    owner: str
    position: Position

    def is_void(self, today: date) -> bool:
        """True from the day after ``until``."""
        return today > self.until

    def is_of(self, check_id: str) -> bool:
        """True where the check is meant."""
        return self.check in (check_id, f"{Layer.of(check_id).value}.*")


@dataclass(frozen=True, slots=True)
class Granted:
    """A waiver with the names of the hosts that its pattern means in the inventory."""

    waiver: Waiver
    hosts: frozenset[str]

    def covers(self, check_id: str, host: str, hosts: Collection[str] = ()) -> bool:
        """True where what the check finds on the host is meant.

        Of a group (``@gpu``) it is where all of the ``hosts`` that the verdict names are meant.
        """
        found_on = hosts if host.startswith("@") and hosts else (host,)
        return self.hosts.issuperset(found_on) and self.waiver.is_of(check_id)


def apply(
    verdict: Verdict, check_id: str, host: str, granted: Iterable[Granted], today: date
) -> Verdict:
    """The verdict, or where a living waiver covers a fail or a warning, the skip it becomes.

    Cause, remedies and measured values stay: the fault is still there.
    """
    if verdict.status not in (Status.FAIL, Status.WARN):
        return verdict
    for each in granted:
        waiver = each.waiver
        if each.covers(check_id, host, verdict.hosts) and not waiver.is_void(today):
            who = f" ({waiver.owner})" if waiver.owner else ""
            reason = f"waived until {waiver.until}: {waiver.reason}{who}"
            return replace(
                verdict,
                status=Status.SKIP,
                kind=Kind.WAIVED,
                reason=f"{' '.join(reason.split())} (was: {verdict.status}, {verdict.reason})",
                advisory=verdict.status is Status.WARN,
            )
    return verdict


def warn_of_void(waivers: Iterable[Waiver], notes: Notes, today: date) -> None:
    """Warn of each waiver that holds no longer."""
    for waiver in waivers:
        if waiver.is_void(today):
            notes.warning(
                waiver.position,
                f"the waiver of {waiver.check} on {waiver.hosts} is void, its last day was "
                f"{waiver.until}; mend the fault, or give it a new date",
                "void-waiver",
            )


def warn_of_unused(
    granted: Iterable[Granted], results: Sequence[Result], notes: Notes, today: date
) -> None:
    """Warn of each living waiver that waived nothing, though hosts of it are in the results.

    One whose hosts were all left out of the run has nothing to say; one whose pattern means no
    host at all has.
    """
    present = {result.host for result in results}
    for each in granted:
        waiver = each.waiver
        if waiver.is_void(today) or (each.hosts and not each.hosts & present):
            continue
        covered = [
            finding.verdict
            for result in results
            for finding in result.findings
            if each.covers(result.check, result.host, finding.verdict.hosts)
        ]
        if any(verdict.kind is Kind.WAIVED for verdict in covered):
            continue
        why = "no fault of it there" if covered else "no such check on such a host"
        notes.warning(
            waiver.position,
            f"the waiver of {waiver.check} on {waiver.hosts} waived nothing: {why} in this run",
            "unused-waiver",
        )


# --- reading ------------------------------------------------------------------------------------


def read_waivers(fields: Fields, node: Node, ids: Collection[str]) -> tuple[Waiver, ...]:
    """The waivers of a list; what is wrong is noted."""
    nodes = fields.items(node, "waivers", "waivers", may_be_empty=True)
    return tuple(
        waiver for each in nodes if (waiver := _read_waiver(fields, each, ids)) is not None
    )


def _read_waiver(fields: Fields, node: Node, ids: Collection[str]) -> Waiver | None:
    keys = fields.mapping(node, "a waiver", KEYS, REQUIRED)
    if keys is None:
        return None
    check = check_name(fields, keys["check"], ids, "check") if "check" in keys else None
    hosts = fields.text(keys["hosts"], "hosts") if "hosts" in keys else None
    until = fields.day(keys["until"], "until") if "until" in keys else None
    reason = fields.text(keys["reason"], "reason") if "reason" in keys else None
    if reason is not None and len(reason) < MIN_REASON:
        fields.wrong(
            keys["reason"].at, f"reason: say it in {MIN_REASON} characters or more", "reason"
        )
    owner = fields.text(keys["owner"], "owner") if "owner" in keys else None
    if check is None or hosts is None or until is None or reason is None:
        return None
    return Waiver(check, hosts, until, reason, owner or "", node.at)


def read_file_of_waivers(
    text: str, path: str, found: Sequence[FoundCheck], notes: Notes
) -> tuple[Waiver, ...]:
    """The waivers of a file of their own: a mapping with the one key ``waivers``.

    What is wrong is noted. Raises ``Refused`` where reading cannot go on.
    """
    root = compose(text, path, notes)
    fields = Fields(notes)
    if root is None:
        fields.wrong(Position(path, 1), "wanted waivers, found an empty file", "type")
        return ()
    keys = fields.mapping(root, "a file of waivers", ("waivers",), ("waivers",))
    if keys is None or "waivers" not in keys:
        return ()
    return read_waivers(fields, keys["waivers"], {one.id for one in found})


def load(path: Path, found: Sequence[FoundCheck]) -> tuple[Waiver, ...]:
    """Read a file of waivers. Raises ``PlaybookError`` with every problem, sorted by position."""
    notes = Notes()
    waivers: tuple[Waiver, ...] = ()
    try:
        waivers = read_file_of_waivers(read_file(path), str(path), found, notes)
    except Refused as refused:
        notes.errors.add(refused.problem)
    if notes.errors:
        raise PlaybookError(*(each.line() for each in sorted(notes.errors)[:MAX_ERRORS]))
    return waivers

"""What stands in the way of judging a subject: checks that it needs, and lower layers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from commcheck import peers
from commcheck.check import AnyCheck, readings_of
from commcheck.lazy import dataclass
from commcheck.model import Finding, Kind, Layer, Status, Subject, Verdict, on_one_rail
from commcheck.plan import is_absent
from commcheck.readings import Desk


@dataclass(frozen=True, slots=True)
class Blocker:
    """Why a subject cannot be judged yet, or where it is waived, why it may be wrong."""

    reason: str
    kind: Kind = Kind.BLOCKED


def blocker_of(desk: Desk, check: AnyCheck, subject: Subject) -> Blocker | None:
    """What stands in the way of judging the subject.

    A need that failed, or is itself blocked or undecidable, blocks. One that could not be read
    (``error``) does not: a missing tool must not blind the checks that do not use it; they are
    judged and marked. Nor does one that is waived: only what is wrong then goes with it.
    """
    waived: Blocker | None = None
    for need in check.needs:
        for finding in _of_need(desk, need, subject):
            verdict = finding.verdict
            on = f" on {finding.subject}" if finding.subject else ""
            if verdict.status is Status.FAIL:
                return Blocker(f"blocked: {need} failed{on}")
            if verdict.kind is Kind.UNDECIDABLE:
                return Blocker(f"blocked: {need} is undecidable{on}")
            if verdict.kind is Kind.BLOCKED:
                return Blocker(f"blocked: {verdict.reason.removeprefix('blocked: ')}")
            if verdict.kind is Kind.WAIVED and not verdict.advisory and waived is None:
                waived = Blocker(f"{need} failed{on}, waived", Kind.WAIVED)
    if is_absent(subject) and readings_of(check.seen):
        return Blocker(f"blocked: {subject.label} is not there")
    return waived


def put_up_with(verdict: Verdict, root: Blocker) -> Verdict:
    """A verdict on what is waived below: what is wrong goes with it, and what is right stays."""
    if verdict.status not in (Status.FAIL, Status.WARN) and verdict.kind is not Kind.UNDECIDABLE:
        return verdict
    reason = f"consequence of {root.reason}: {verdict.reason}"
    return replace(verdict, status=Status.SKIP, kind=Kind.WAIVED, reason=reason)


def unproven_below(desk: Desk, check: AnyCheck, subject: Subject) -> tuple[str, ...]:
    """Checks under this one that could not be read here: lower layers, and its own needs."""
    needs = tuple(need for need in check.needs if _is_unproven(_of_need(desk, need, subject)))
    height = check.layer.height
    if height not in desk.unproven:
        # The lower layers are done by now, and the same for every subject of this one.
        desk.unproven[height] = tuple(
            check_id
            for check_id, findings in desk.findings.items()
            if Layer.of(check_id).height < height and _is_unproven(findings)
        )
    return needs + desk.unproven[height]


def _is_unproven(findings: Sequence[Finding]) -> bool:
    return any(
        # A fail below is here only where the playbook opened the gate.
        finding.verdict.status in (Status.ERROR, Status.FAIL)
        or (finding.verdict.kind is Kind.UNDECIDABLE and not peers.was_read(finding))
        for finding in findings
    )


def _of_need(desk: Desk, need: str, subject: Subject) -> list[Finding]:
    """What a needed check said of the same subject or rail, of the host, or of all its subjects."""
    found = desk.findings.get(need, [])
    label = subject.label
    same = [finding for finding in found if on_one_rail(finding.subject, label)]
    return same or [finding for finding in found if not finding.subject] or found

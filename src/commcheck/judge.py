"""From the frames of one host to its results: read, judge, fold, gate. Pure.

Readings are had once and shared. Nothing that could not be read is ever a pass: it is an
``error`` with its class, and what stands above it is judged and marked ``unproven_below``.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from commcheck.check import (
    AnyCheck,
    FirstOf,
    Output,
    Reader,
    Reading,
    Unread,
    clean,
    readings_of,
)
from commcheck.collect.base import Frame, State
from commcheck.discover import in_order_of_needs
from commcheck.errors import (
    CommandMissing,
    CommandNotRun,
    CommandTimedOut,
    HostError,
    OutputTruncated,
    SudoRefused,
    Unjudgeable,
)
from commcheck.model import (
    Bound,
    Evidence,
    Finding,
    Host,
    Kind,
    Layer,
    Machine,
    Result,
    Status,
    Subject,
    Verdict,
    gates,
)
from commcheck.plan import REACHABLE, is_absent, limits_for, requests_of, subjects, want_for

EVIDENCE_CAP = 4096
"""Characters of a command's output kept beside a verdict: the whole is in the host's frames."""

MISSING_RC = (126, 127)
"""POSIX: found but not executable, not found."""

Decode = Callable[[bytes], str]


@dataclass(slots=True)
class _Desk:
    """What is known of one host while it is judged: frames in, readings and findings kept."""

    host: Host
    machine: Machine
    frames: Mapping[str, Frame]
    decode: Decode
    outputs: dict[str, Output] = field(default_factory=dict)
    read: dict[tuple[int, str, str], Any] = field(default_factory=dict)
    findings: dict[str, list[Finding]] = field(default_factory=dict)


def judge_host(
    host: Host,
    checks: Sequence[AnyCheck],
    machine: Machine | None,
    frames: Mapping[str, Frame],
    error: HostError | None,
    decode: Decode,
) -> tuple[Result, ...]:
    """Every planned check of a host, folded, in the order planned.

    ``machine`` is None where the session never told what is on the host; then ``error`` says why.
    With an ``error`` and a machine the session broke half-way: what was answered is judged.
    """
    desk = _Desk(host, machine or Machine(host.name), frames, decode)
    gate = REACHABLE if machine is None else ""
    results: dict[str, Result] = {}
    for layer in Layer:
        here = [check for check in checks if check.layer is layer]
        for check in in_order_of_needs(here):
            if check.id == REACHABLE and error is not None:
                findings = [_finding(check, host, "", _unreached(error))]
            elif gate:
                findings = [_finding(check, host, "", _gated(gate, known=machine is not None))]
            else:
                findings = _judge_check(desk, check)
            desk.findings[check.id] = findings
            seconds = sum({e.key: e.seconds for f in findings for e in f.evidence}.values())
            results[check.id] = Result(
                check=check.id, host=host.name, findings=tuple(findings), seconds=seconds
            )
        if not gate:
            gate = next((check.id for check in here if gates(results[check.id])), "")
    return tuple(results[check.id] for check in checks)


def _finding(check: AnyCheck, host: Host, subject: str, verdict: Verdict) -> Finding:
    return Finding(check=check.id, host=host.name, subject=subject, verdict=verdict)


def _unreached(error: HostError) -> Verdict:
    # The machine-readable code leads, so that a thousand hosts group by it.
    reason = f"{error.code}: {error.reason}"
    return Verdict(
        status=Status.ERROR,
        kind=Kind.HOST,
        reason=reason if not error.remedy else f"{reason}; {error.remedy}",
        error=type(error).__name__,
    )


def _gated(by: str, *, known: bool) -> Verdict:
    why = f"{by} failed on this host" if known else f"{by} could not be judged on this host"
    return Verdict(status=Status.SKIP, kind=Kind.GATED, reason=f"gated: {why}")


def _judge_check(desk: _Desk, check: AnyCheck) -> list[Finding]:
    machine = desk.machine
    if machine.platform not in check.platforms:
        verdict = _skip(Kind.NOT_APPLICABLE, f"not applicable: platform is {machine.platform}")
        return [_finding(check, desk.host, "", verdict)]
    asked = subjects(check, machine)
    if not asked:
        noun = check.subject.__name__.lower()
        verdict = _skip(Kind.NOT_APPLICABLE, f"not applicable: no {noun} on this host")
        return [_finding(check, desk.host, "", verdict)]
    return [_judge_subject(desk, check, subject) for subject in asked]


def _skip(kind: Kind, reason: str) -> Verdict:
    return Verdict(status=Status.SKIP, kind=kind, reason=reason)


def _judge_subject(desk: _Desk, check: AnyCheck, subject: Subject) -> Finding:
    bounds: tuple[Bound, ...] = ()
    evidence: list[Evidence] = []
    try:
        reason = check.not_applicable(subject)
        blocker = _blocker(desk, check, subject)
        if reason is not None:
            verdict = _skip(Kind.NOT_APPLICABLE, f"not applicable: {reason}")
        elif blocker:
            verdict = _skip(Kind.BLOCKED, f"blocked: {blocker}")
        else:
            want, wanted = want_for(check, desk.host, desk.machine.platform)
            limits, thresholds = limits_for(check, desk.host)
            bounds = wanted + thresholds
            seen = {
                name: _take(desk, reading, subject, evidence)
                for name, reading in readings_of(check.seen).items()
            }
            verdict = check.judge(check.seen(**seen), subject, want, limits)
    except Unjudgeable as error:
        verdict = _unjudged(error.type_name, error.reason, error.remedy)
    except Exception as error:  # noqa: BLE001 - a bug in a check must not end the run, nor pass
        last = traceback.extract_tb(error.__traceback__)[-1]
        verdict = _unjudged(
            "Bug",
            f"the check itself broke: {type(error).__name__}: {error} "
            f"({last.filename}:{last.lineno})",
        )
    return Finding(
        check=check.id,
        host=desk.host.name,
        subject=subject.label,
        verdict=verdict,
        bounds=bounds,
        evidence=tuple(evidence),
        unproven_below=_unproven_below(desk, check, subject),
    )


def _unjudged(error: str, reason: str, remedy: str = "") -> Verdict:
    line = " ".join(reason.split()) or error
    return Verdict(
        status=Status.ERROR,
        kind=Kind.CHECK,
        reason=f"{line}; {remedy}" if remedy else line,
        error=error,
    )


# --- needs --------------------------------------------------------------------------------------


def _of_need(desk: _Desk, need: str, subject: Subject) -> list[Finding]:
    """What a needed check said of the same subject, of the host, or of all its subjects."""
    found = desk.findings.get(need, [])
    same = [finding for finding in found if finding.subject == subject.label]
    return same or [finding for finding in found if not finding.subject] or found


def _blocker(desk: _Desk, check: AnyCheck, subject: Subject) -> str:
    """Why the subject cannot be judged yet, or "".

    A need that failed, or is itself blocked or undecidable, blocks. One that could not be read
    (``error``) does not: a missing tool must not blind the checks that do not use it; they are
    judged and marked.
    """
    for need in check.needs:
        for finding in _of_need(desk, need, subject):
            verdict = finding.verdict
            on = f" on {finding.subject}" if finding.subject else ""
            if verdict.status is Status.FAIL:
                return f"{need} failed{on}"
            if verdict.kind is Kind.UNDECIDABLE:
                return f"{need} is undecidable{on}"
            if verdict.kind is Kind.BLOCKED:
                return verdict.reason.removeprefix("blocked: ")
    if is_absent(subject) and readings_of(check.seen):
        return f"{subject.label} is not there"
    return ""


def _unproven_below(desk: _Desk, check: AnyCheck, subject: Subject) -> tuple[str, ...]:
    """Checks under this one that could not be read here: lower layers, and its own needs."""
    unread: list[str] = []
    for check_id, findings in desk.findings.items():
        below = Layer.of(check_id).height < check.layer.height
        relevant = findings if below else _of_need(desk, check_id, subject)
        if not below and check_id not in check.needs:
            continue
        if any(
            finding.verdict.status is Status.ERROR or finding.verdict.kind is Kind.UNDECIDABLE
            for finding in relevant
        ):
            unread.append(check_id)
    return tuple(unread)


# --- readings -----------------------------------------------------------------------------------


def _take(desk: _Desk, reading: Reading[Any], subject: Subject, evidence: list[Evidence]) -> object:
    """A reading, or ``Unread`` where it was optional; raises ``Unjudgeable``."""
    try:
        return _first(desk, reading, subject, evidence)
    except Unjudgeable as error:
        if reading.required:
            raise
        return Unread(error.reason, error.type_name, error.remedy)


def _first(
    desk: _Desk, reading: Reading[Any], subject: Subject, evidence: list[Evidence]
) -> object:
    refused: list[Unjudgeable] = []
    for reader in reading.reader.readers:
        try:
            value = _read(desk, reader, subject, reading.at, evidence)
        except Unjudgeable as error:
            refused.append(error)
        else:
            return value
        if len(refused) < len(reading.reader.readers):
            silent = {each.key for each in requests_of(reader, subject, desk.machine, reading.at)}
            evidence[:] = [
                replace(each, used=False) if each.key in silent else each for each in evidence
            ]
    if len(refused) == 1:
        raise refused[0]
    raise _together(reading.reader, refused)


def _together(reader: Reader[Any] | FirstOf[Any], refused: Sequence[Unjudgeable]) -> Unjudgeable:
    """One error for several fallbacks: the class of the first that was more than missing."""
    telling = next((e for e in refused if not isinstance(e, CommandMissing)), refused[0])
    reasons = "; ".join(error.reason for error in refused)
    return Unjudgeable(
        f"none of {reader.tool} spoke: {reasons}", telling.remedy, type_name=telling.type_name
    )


def _read(
    desk: _Desk,
    reader: Reader[Any],
    subject: Subject,
    at: str,
    evidence: list[Evidence],
) -> object:
    target = desk.machine if reader.per is Machine else subject
    asked = requests_of(reader, subject, desk.machine, at)
    if len(asked) != len(reader.commands):
        for command in reader.commands:
            command.on(target)  # raises what made the place impossible to fill
    for request in asked:
        _show(desk, request.key, evidence)
    memo = (id(reader), target.label, at)
    if memo not in desk.read:
        try:
            desk.read[memo] = _parse(desk, reader, [request.key for request in asked])
        except Unjudgeable as error:
            desk.read[memo] = error
    value = desk.read[memo]
    if isinstance(value, Unjudgeable):
        raise value
    return value


def _parse(desk: _Desk, reader: Reader[Any], keys: Sequence[str]) -> object:
    outputs = [_output(desk, key) for key in keys]
    for key, output in zip(keys, outputs, strict=True):
        _require_answer(desk.frames[key], output, reader)
    return reader.parse(*outputs)


def _output(desk: _Desk, key: str) -> Output:
    if key not in desk.frames:
        raise CommandNotRun(f"not recorded: {key.partition(': ')[2]} was not run on this host")
    if key not in desk.outputs:
        frame = desk.frames[key]
        desk.outputs[key] = Output(
            stdout=desk.decode(frame.stdout),
            stderr=desk.decode(frame.stderr),
            rc=0 if frame.rc is None else frame.rc,
            truncated=frame.truncated,
        )
    return desk.outputs[key]


def _require_answer(frame: Frame, output: Output, reader: Reader[Any]) -> None:
    """Raise for every way in which a command did not answer; what is left is for the parser."""
    command = frame.key.partition(": ")[2]
    if frame.state is State.TIMED_OUT:
        raise CommandTimedOut(
            f"{command} timed out after {frame.ended_s - frame.started_s:.0f} s",
            "log in and run it by hand; a hang usually means driver or firmware trouble, see dmesg",
        )
    if frame.state is State.SUDO_REFUSED:
        raise SudoRefused(
            f"{command} needs root, and sudo -n was refused: {output.complaint}",
            "allow it in sudoers with NOPASSWD, or run as a user who may",
        )
    if frame.state is State.LOST or frame.rc is None:
        raise CommandNotRun(f"{command} did not end before the session did")
    if frame.rc in MISSING_RC:
        raise CommandMissing(
            f"{command.split()[0]} is not there (exit code {frame.rc}: {output.complaint})",
            f"install {reader.tool}, or add its folder to commcheck_path",
        )
    if output.truncated and not reader.reads_cut_output:
        raise OutputTruncated(f"{command} printed more than its cap, and was cut")


def _show(desk: _Desk, key: str, evidence: list[Evidence]) -> None:
    frame = desk.frames.get(key)
    if frame is None or any(each.key == key for each in evidence):
        return
    output = _output(desk, key)
    text = clean(output.stdout)
    if output.stderr.strip():
        text = f"{text.rstrip()}\n[stderr] {clean(output.stderr).strip()}".lstrip()
    half = EVIDENCE_CAP // 2
    if len(text) > EVIDENCE_CAP:
        left_out = len(text) - EVIDENCE_CAP
        text = f"{text[:half]}\n... {left_out} characters left out ...\n{text[-half:]}"
    evidence.append(
        Evidence(
            key=key,
            rc=frame.rc,
            seconds=round(max(0.0, frame.ended_s - frame.started_s), 3),
            head=text,
            truncated=frame.truncated,
        )
    )

"""From the frames of one host to its results: read, judge, fold, gate. Pure.

Readings are had once and shared. Nothing that could not be read is ever a pass: it is an
``error`` with its class, and what stands above it is judged and marked ``unproven_below``.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from commcheck import peers
from commcheck.check import (
    EARLIER,
    WATCH,
    AnyCheck,
    EveryRail,
    FirstOf,
    Output,
    Reader,
    Reading,
    Span,
    Unread,
    Watched,
    clean,
    readings_of,
)
from commcheck.collect.base import Frame, Request, State
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
    PLATFORMS,
    UNKNOWN,
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
from commcheck.plan import (
    REACHABLE,
    Asked,
    is_absent,
    limits_for,
    present_rails,
    requests_of,
    subjects,
    want_for,
)
from commcheck.plays import Gate

EVIDENCE_CAP = 4096
"""Characters of a command's output kept beside a verdict: the whole is in the host's frames."""

MISSING_RC = (126, 127)
"""POSIX: found but not executable, not found."""

Decode = Callable[[bytes], str]

Waive = Callable[[Verdict, str, str], Verdict]
"""From a verdict, its check's id and its host's name to what a waiver makes of it."""


def as_it_is(verdict: Verdict, _check: str, _host: str) -> Verdict:
    """Nothing is waived."""
    return verdict


def waived(result: Result, waive: Waive) -> Result:
    """The result with the waivers that cover its findings applied."""
    return replace(
        result,
        findings=tuple(_waived(finding, waive) for finding in result.findings),
    )


def _waived(finding: Finding, waive: Waive) -> Finding:
    verdict = waive(finding.verdict, finding.check, finding.host)
    return finding if verdict is finding.verdict else replace(finding, verdict=verdict)


RestsOn = dict[str, bool]
"""Keys of the commands a verdict rests on; False: a fallback that did not speak."""

Parsed = dict[tuple[int, tuple[Output, ...]], Any]
"""What equal answers were read as, over all hosts of a run: a fleet mostly says the same."""

PARSED_MOST = 4096
PARSED_CHARS = 16_384
"""Bounds of that memory: this many answers, none longer than this."""


@dataclass(slots=True)
class _Desk:
    """What is known of one host while it is judged: frames in, readings and findings kept."""

    host: Host
    machine: Machine
    frames: Mapping[str, Frame]
    decode: Decode
    parsed: Parsed
    outputs: dict[str, Output] = field(default_factory=dict)
    read: dict[tuple[int, str, str], Any] = field(default_factory=dict)
    asked: dict[tuple[int, str, str], tuple[Request, ...]] = field(default_factory=dict)
    in_force: dict[str, tuple[Any, Any, tuple[Bound, ...]]] = field(default_factory=dict)
    findings: dict[str, list[Finding]] = field(default_factory=dict)
    unproven: dict[int, tuple[str, ...]] = field(default_factory=dict)  # below a layer's height


def judge_host(
    host: Host,
    asked: Sequence[Asked],
    machine: Machine | None,
    frames: Mapping[str, Frame],
    error: HostError | None,
    decode: Decode,
    waive: Waive = as_it_is,
    parsed: Parsed | None = None,
) -> tuple[Result, ...]:
    """Every planned check of a host, folded, in the order planned.

    ``machine`` is None where the session never told what is on the host; then ``error`` says why.
    With an ``error`` and a machine the session broke half-way: what was answered is judged.
    ``parsed`` is shared by the hosts of a run, so that equal answers are parsed once.
    """
    parsed = {} if parsed is None else parsed
    desk = _Desk(host, machine or Machine(host.name), frames, decode, parsed)
    gate = REACHABLE if machine is None else ""
    by_id = {each.check.id: each for each in asked}
    results: dict[str, Result] = {}
    for layer in Layer:
        here = in_order_of_needs(each.check for each in asked if each.check.layer is layer)
        for check in here:
            if check.id == REACHABLE and error is not None:
                findings = [_finding(check, host, "", _unreached(error))]
            elif gate:
                findings = [_finding(check, host, "", _gated(gate, known=machine is not None))]
            else:
                findings = [
                    _waived(finding, waive) for finding in _judge_check(desk, by_id[check.id])
                ]
            desk.findings[check.id] = findings
            seconds = sum({e.key: e.seconds for f in findings for e in f.evidence}.values())
            results[check.id] = Result(
                check=check.id, host=host.name, findings=tuple(findings), seconds=seconds
            )
        if layer is Layer.PHYSICAL and machine is not None and error is None:
            _say_if_nothing_was_asked(desk, asked, results)
        shut = (check.id for check in here if _shuts(by_id[check.id], results[check.id]))
        gate = gate or next(shut, "")
    return tuple(results[each.check.id] for each in asked)


def _say_if_nothing_was_asked(
    desk: _Desk, asked: Sequence[Asked], results: dict[str, Result]
) -> None:
    """A host that only answers has not passed: no check of the run is for its platform."""
    others = [each.check for each in asked if each.check.id != REACHABLE]
    platform = desk.machine.platform
    if not others or any(platform in check.platforms for check in others):
        return
    verdict = _skip(
        Kind.UNDECIDABLE,
        f"undecidable: the host answers, but none of the {len(others)} checks asked is for "
        f"platform {platform}; nothing was judged here",
    )
    finding = Finding(check=REACHABLE, host=desk.host.name, subject="", verdict=verdict)
    desk.findings[REACHABLE] = [finding]
    results[REACHABLE] = Result(check=REACHABLE, host=desk.host.name, findings=(finding,))


def _shuts(asked: Asked, result: Result) -> bool:
    """True where the layers above are closed to the host."""
    unreached = result.kind is Kind.HOST
    return gates(result) and (asked.gate is not Gate.NONE or unreached)


def gate_fleet(
    results: Sequence[Result], asked_of: Mapping[str, Sequence[Asked]]
) -> tuple[Result, ...]:
    """What changes in the end where a play's gate is the fleet: one host's fail closes all.

    ``asked_of``: by host name. Returns the results that take the place of those judged before.
    """
    shut: tuple[int, str] | None = None
    for result in results:
        asked = next((a for a in asked_of.get(result.host, ()) if a.check.id == result.check), None)
        if asked is not None and asked.gate is Gate.FLEET and gates(result):
            height = Layer.of(result.check).height
            shut = min(shut or (height, result.check), (height, result.check))
    if shut is None:
        return ()
    reason = f"gated: {shut[1]} failed on the fleet"
    verdict = Verdict(status=Status.SKIP, kind=Kind.GATED, reason=reason)
    return tuple(
        Result(
            check=result.check,
            host=result.host,
            findings=(Finding(check=result.check, host=result.host, subject="", verdict=verdict),),
        )
        for result in results
        if Layer.of(result.check).height > shut[0] and result.kind is not Kind.GATED
    )


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


def _judge_check(desk: _Desk, asked: Asked) -> list[Finding]:
    check = asked.check
    machine = desk.machine
    if asked.not_permitted:
        verdict = _skip(Kind.NOT_PERMITTED, f"not permitted: {asked.not_permitted}")
        return [_finding(check, desk.host, "", verdict)]
    if machine.platform not in check.platforms:
        return [_finding(check, desk.host, "", _other_platform(machine))]
    found = subjects(check, machine)
    if not found:
        noun = check.subject.__name__.lower()
        verdict = _skip(Kind.NOT_APPLICABLE, f"not applicable: no {noun} on this host")
        return [_finding(check, desk.host, "", verdict)]
    return [finding for subject in found for finding in _judge_subject(desk, asked, subject)]


def _other_platform(machine: Machine) -> Verdict:
    if machine.platform == UNKNOWN:
        # Not "not applicable": nobody knows, and a host that nothing was asked of must not pass.
        return _skip(
            Kind.UNDECIDABLE,
            "undecidable: nothing tells the platform of this host; "
            f"declare commcheck_platform: {', '.join(PLATFORMS)}",
        )
    return _skip(Kind.NOT_APPLICABLE, f"not applicable: platform is {machine.platform}")


def _skip(kind: Kind, reason: str) -> Verdict:
    return Verdict(status=Status.SKIP, kind=kind, reason=reason)


def _judge_subject(desk: _Desk, asked: Asked, subject: Subject) -> list[Finding]:
    check = asked.check
    bounds: tuple[Bound, ...] = ()
    rests_on: RestsOn = {}
    verdicts: tuple[Verdict, ...]
    try:
        reason = asked.not_applicable(desk.host, desk.machine, subject)
        blocker = _blocker(desk, check, subject)
        if reason is not None:
            verdicts = (_skip(Kind.NOT_APPLICABLE, f"not applicable: {reason}"),)
        elif blocker:
            verdicts = (_skip(Kind.BLOCKED, f"blocked: {blocker}"),)
        else:
            want, limits, bounds = _in_force(desk, asked)
            seen = {
                name: _take(desk, reading, subject, rests_on)
                for name, reading in readings_of(check.seen).items()
            }
            verdicts = check.verdicts(check.seen(**seen), subject, want, limits)
            if check.peers:
                verdicts = tuple(
                    peers.placed(verdict, desk.host, desk.machine.platform) for verdict in verdicts
                )
            if asked.is_advisory:
                verdicts = tuple(_as_advice(verdict) for verdict in verdicts)
    except Unjudgeable as error:
        verdicts = (_unjudged(error.type_name, error.reason, error.remedy),)
    except Exception as error:  # noqa: BLE001 - a bug in a check must not end the run, nor pass
        last = traceback.extract_tb(error.__traceback__)[-1]
        broke = _unjudged(
            "Bug",
            f"the check itself broke: {type(error).__name__}: {error} "
            f"({last.filename}:{last.lineno})",
        )
        verdicts = (broke,)
    unproven = _unproven_below(desk, check, subject)
    return [
        Finding(
            check=check.id,
            host=desk.host.name,
            subject=subject.label,
            verdict=verdict,
            bounds=bounds,
            evidence=_evidence(desk, rests_on, verdict),
            unproven_below=unproven,
        )
        for verdict in verdicts
    ]


def _in_force(desk: _Desk, asked: Asked) -> tuple[Any, Any, tuple[Bound, ...]]:
    """What a check wants of the host, its limits, and both as bounds: the same for all subjects."""
    check = asked.check
    if check.id not in desk.in_force:
        want, wanted = want_for(check, desk.host, desk.machine.platform)
        limits, thresholds = limits_for(check, desk.host, asked.params)
        desk.in_force[check.id] = want, limits, wanted + thresholds
    return desk.in_force[check.id]


def _as_advice(verdict: Verdict) -> Verdict:
    return replace(verdict, status=Status.WARN) if verdict.status is Status.FAIL else verdict


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
    label = subject.label
    same = [finding for finding in found if finding.subject == label]
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
        or finding.verdict.kind is Kind.UNDECIDABLE
        for finding in findings
    )


# --- readings -----------------------------------------------------------------------------------


def _take(desk: _Desk, reading: Reading[Any], subject: Subject, rests_on: RestsOn) -> object:
    """A reading, or ``Unread`` where it was optional; raises ``Unjudgeable``."""
    if reading.every_rail:
        one = replace(reading, every_rail=False)
        rails = present_rails(desk.machine)
        return EveryRail({rail.label: _take(desk, one, rail, rests_on) for rail in rails})
    try:
        return _first(desk, reading, subject, rests_on)
    except Unjudgeable as error:
        if reading.required:
            raise
        return Unread(error.reason, error.type_name, error.remedy)


def _first(desk: _Desk, reading: Reading[Any], subject: Subject, rests_on: RestsOn) -> object:
    refused: list[Unjudgeable] = []
    for reader in reading.reader.readers:
        try:
            if reading.at == WATCH:
                return _watch(desk, reader, subject, rests_on)
            return _read(desk, reader, subject, reading.at, rests_on)
        except Unjudgeable as error:
            refused.append(error)
        if len(refused) < len(reading.reader.readers):
            for phase in reading.phases:
                for request in _asked(desk, reader, subject, phase):
                    rests_on[request.key] = False
    if len(refused) == 1:
        raise refused[0]
    raise _together(reading.reader, refused)


def _watch(desk: _Desk, reader: Reader[Any], subject: Subject, rests_on: RestsOn) -> Watched[Any]:
    """The reading at both ends of the visit, and that of an earlier run where there is one."""
    first, last = (_read(desk, reader, subject, at, rests_on) for at in ("start", "end"))
    at_start, at_end = (_begun_s(desk, reader, subject, at) for at in ("start", "end"))
    visit = Span(first, last, max(0.0, at_end - at_start))
    earlier: RestsOn = {}
    try:
        before = _read(desk, reader, subject, EARLIER, earlier)
        seconds = at_end - _begun_s(desk, reader, subject, EARLIER)
    except Unjudgeable:
        return Watched(visit)
    if seconds <= visit.seconds:
        return Watched(visit)
    rests_on.update(earlier)
    return Watched(visit, Span(before, last, seconds))


def _begun_s(desk: _Desk, reader: Reader[Any], subject: Subject, at: str) -> float:
    """When its first command began, in seconds since the host's boot."""
    request = _asked(desk, reader, subject, at)[0]
    return desk.frames[request.key].started_s


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
    rests_on: RestsOn,
) -> object:
    target = desk.machine if reader.per is Machine else subject
    memo = (id(reader), target.label, at)
    asked = _asked(desk, reader, subject, at)
    if len(asked) != len(reader.commands):
        for command in reader.commands:
            command.on(target)  # raises what made the place impossible to fill
    for request in asked:
        rests_on.setdefault(request.key, True)
    if memo not in desk.read:
        try:
            desk.read[memo] = _parse(desk, reader, [request.key for request in asked])
        except Unjudgeable as error:
            desk.read[memo] = error
    value = desk.read[memo]
    if isinstance(value, Unjudgeable):
        raise value
    return value


def _asked(desk: _Desk, reader: Reader[Any], subject: Subject, at: str) -> tuple[Request, ...]:
    """What the host was asked for a reading; worked out once."""
    target = desk.machine if reader.per is Machine else subject
    memo = (id(reader), target.label, at)
    if memo not in desk.asked:
        desk.asked[memo] = requests_of(reader, subject, desk.machine, at)
    return desk.asked[memo]


def _parse(desk: _Desk, reader: Reader[Any], keys: Sequence[str]) -> object:
    outputs = tuple(_output(desk, key) for key in keys)
    for key, output in zip(keys, outputs, strict=True):
        _require_answer(desk.frames[key], output, reader)
    size = sum(len(output.stdout) + len(output.stderr) for output in outputs)
    if size > PARSED_CHARS or reader.varies:
        return reader.parse(*outputs)
    memo = (id(reader), outputs)
    if memo not in desk.parsed:
        if len(desk.parsed) >= PARSED_MOST:
            desk.parsed.clear()
        desk.parsed[memo] = reader.parse(*outputs)
    return desk.parsed[memo]


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
        program = command.removeprefix("sudo ").split()[0]
        raise CommandMissing(
            f"{program} is not there (exit code {frame.rc}: {output.complaint})",
            f"install {program}, or add its folder to commcheck_path",
        )
    if output.truncated and not reader.reads_cut_output:
        raise OutputTruncated(f"{command} printed more than its cap, and was cut")


def _evidence(desk: _Desk, rests_on: RestsOn, verdict: Verdict) -> tuple[Evidence, ...]:
    """The commands behind a verdict. What passed shows no output: it is in the host's frames."""
    shown = verdict.status is not Status.PASS
    return tuple(
        Evidence(
            key=key,
            rc=frame.rc,
            seconds=round(max(0.0, frame.ended_s - frame.started_s), 3),
            head=head_of(_output(desk, key)) if shown else "",
            truncated=frame.truncated,
            used=used,
        )
        for key, used in rests_on.items()
        if (frame := desk.frames.get(key)) is not None
    )


def head_of(output: Output) -> str:
    """stdout and stderr as a person may see them, the middle left out where they are long."""
    text = output.text
    if output.stderr.strip():
        text = f"{text.rstrip()}\n[stderr] {clean(output.stderr).strip()}".lstrip()
    if len(text) <= EVIDENCE_CAP:
        return text
    half = EVIDENCE_CAP // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n... {left_out} characters left out ...\n{text[-half:]}"

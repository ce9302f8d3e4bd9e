"""From the frames of one host to its results: read, judge, fold, gate. Pure.

Readings are had once and shared. Nothing that could not be read is ever a pass: it is an
``error`` with its class, and what stands above it is judged and marked ``unproven_below``.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from commcheck import peers
from commcheck.check import AnyCheck, fitting, known_to, readings_of
from commcheck.collect.base import Frame
from commcheck.consequences import folded
from commcheck.discover import in_order_of_needs
from commcheck.errors import (
    HostError,
    Unjudgeable,
)
from commcheck.model import (
    PLATFORMS,
    UNKNOWN,
    Bound,
    Finding,
    Host,
    Kind,
    Layer,
    Machine,
    Rail,
    Result,
    Status,
    Subject,
    Verdict,
    gates,
)
from commcheck.needs import blocker_of, put_up_with, unproven_below
from commcheck.plan import (
    REACHABLE,
    Asked,
    Known,
    limits_for,
    subjects,
    want_for,
)
from commcheck.plays import Gate
from commcheck.readings import Decode, Desk, Parsed, RestsOn, evidence, take
from commcheck.report.counts import many

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


def judge_host(
    host: Host,
    asked: Sequence[Asked],
    machine: Machine | None,
    frames: Mapping[str, Frame],
    error: HostError | None,
    decode: Decode,
    waive: Waive = as_it_is,
    parsed: Parsed | None = None,
    known: Known | None = None,
) -> tuple[Result, ...]:
    """Every planned check of a host, folded, in the order planned.

    ``machine`` is None where the session never told what is on the host; then ``error`` says why.
    With an ``error`` and a machine the session broke half-way: what was answered is judged.
    ``parsed`` is shared by the hosts of a run, so that equal answers are parsed once; ``known`` is
    what ``requests`` filled when this host was asked.
    """
    parsed = {} if parsed is None else parsed
    desk = Desk(host, machine or Machine(host.name), frames, decode, parsed, known or {})
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
        desk.findings.update(folded(here, desk.findings))
        results.update({check.id: _result(desk, by_id[check.id]) for check in here})
        if layer is Layer.PHYSICAL and machine is not None and error is None:
            _say_if_nothing_was_asked(desk, asked, results)
        shut = (check.id for check in here if _shuts(by_id[check.id], results[check.id]))
        gate = gate or next(shut, "")
    return tuple(results[each.check.id] for each in asked)


def _result(desk: Desk, asked: Asked) -> Result:
    """What is told of a check. Advice is a fail to what needs the check, and to what follows."""
    found = desk.findings[asked.check.id]
    told = [_as_advice(finding) for finding in found] if asked.is_advisory else found
    return Result(
        check=asked.check.id,
        host=desk.host.name,
        findings=tuple(told),
        seconds=sum({e.key: e.seconds for f in found for e in f.evidence}.values()),
        part=_part(desk, asked),
    )


def _say_if_nothing_was_asked(
    desk: Desk, asked: Sequence[Asked], results: dict[str, Result]
) -> None:
    """A host that only answers has not passed: no check of the run is for its platform."""
    others = [each.check for each in asked if each.check.id != REACHABLE]
    platform = desk.machine.platform
    if not others or any(platform in check.platforms for check in others):
        return
    verdict = _skip(
        Kind.UNDECIDABLE,
        f"undecidable: the host answers, but none of the {many(len(others), 'check')} asked is for "
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


def _judge_check(desk: Desk, asked: Asked) -> list[Finding]:
    check = asked.check
    machine = desk.machine
    if asked.not_permitted:
        verdict = _skip(Kind.NOT_PERMITTED, f"not permitted: {asked.not_permitted}")
        return [_finding(check, desk.host, "", verdict)]
    if machine.platform not in check.platforms:
        return [_finding(check, desk.host, "", other_platform(machine.platform))]
    found = subjects(check, machine)
    if not found:
        noun = check.subject.__name__.lower()
        verdict = _skip(Kind.NOT_APPLICABLE, f"not applicable: no {noun} on this host")
        return [_finding(check, desk.host, "", verdict)]
    return [finding for subject in found for finding in _judge_subject(desk, asked, subject)]


def other_platform(platform: str) -> Verdict:
    """What is said of a host of a platform that a check is not for."""
    if platform == UNKNOWN:
        # Not "not applicable": nobody knows, and a host that nothing was asked of must not pass.
        return _skip(
            Kind.UNDECIDABLE,
            "undecidable: nothing tells the platform of this host; "
            f"declare commcheck_platform: {', '.join(PLATFORMS)}",
        )
    return _skip(Kind.NOT_APPLICABLE, f"not applicable: platform is {platform}")


def _skip(kind: Kind, reason: str) -> Verdict:
    return Verdict(status=Status.SKIP, kind=kind, reason=reason)


def _judge_subject(desk: Desk, asked: Asked, subject: Subject) -> list[Finding]:
    check = asked.check
    bounds: tuple[Bound, ...] = ()
    rests_on: RestsOn = {}
    verdicts: tuple[Verdict, ...]
    try:
        reason = asked.not_applicable(desk.host, desk.machine, subject)
        blocker = blocker_of(desk, check, subject)
        if reason is not None:
            verdicts = (_skip(Kind.NOT_APPLICABLE, f"not applicable: {reason}"),)
        elif blocker is not None and blocker.kind is Kind.BLOCKED:
            verdicts = (_skip(Kind.BLOCKED, blocker.reason),)
        else:
            want, limits, bounds = _in_force(desk, asked)
            seen = {
                name: take(desk, reading, subject, rests_on)
                for name, reading in readings_of(check.seen).items()
            }
            verdicts = tuple(
                _for_its_cards(verdict, desk.machine.platform, subject)
                for verdict in check.verdicts(check.seen(**seen), subject, want, limits)
            )
            if check.peers:
                verdicts = tuple(
                    peers.placed(verdict, desk.host, desk.machine.platform, subject)
                    for verdict in verdicts
                )
            if blocker is not None:
                verdicts = tuple(put_up_with(verdict, blocker) for verdict in verdicts)
    except Unjudgeable as error:
        verdicts = (unjudged(error.type_name, error.reason, error.remedy),)
    except Exception as error:  # noqa: BLE001 - a bug in a check must not end the run, nor pass
        last = traceback.extract_tb(error.__traceback__)[-1]
        broke = unjudged(
            "Bug",
            f"the check itself broke: {type(error).__name__}: {error} "
            f"({last.filename}:{last.lineno})",
        )
        verdicts = (broke,)
    unproven = unproven_below(desk, check, subject)
    return [
        Finding(
            check=check.id,
            host=desk.host.name,
            subject=subject.label,
            verdict=verdict,
            bounds=bounds,
            evidence=evidence(desk, rests_on, verdict),
            unproven_below=unproven,
        )
        for verdict in verdicts
    ]


def _for_its_cards(verdict: Verdict, platform: str, subject: Subject) -> Verdict:
    told = for_platform(verdict, platform)
    if not isinstance(subject, Rail) or not told.remedies:
        return told
    # A rail that is absent has no driver: where all are EFA's, it is one, too.
    driver = subject.driver or ("efa" if platform == "gpu-efa" else None)
    return replace(told, remedies=fitting(told.remedies, driver))


def for_platform(verdict: Verdict, platform: str) -> Verdict:
    """The verdict without commands for accelerators that a platform does not have."""
    if not verdict.remedies or not (platform == "ascend" or platform.startswith("gpu")):
        return verdict
    accelerator = "npu" if platform == "ascend" else "gpu"
    return replace(verdict, remedies=known_to(accelerator, verdict.remedies))


def _part(desk: Desk, asked: Asked) -> object | None:
    """What the host holds of a thing that others have parts of, whatever was judged of it."""
    check = asked.check
    if check.together is None or asked.not_permitted or not desk.frames:
        return None
    try:
        want, _, _ = _in_force(desk, asked)
        seen = {
            name: take(desk, reading, desk.machine, {})
            for name, reading in readings_of(check.seen).items()
        }
        return check.together.part(check.seen(**seen), desk.machine, want)
    except Unjudgeable:
        return None
    except Exception:  # noqa: BLE001 - as above; the host keeps what was judged of it by itself
        return None


def _in_force(desk: Desk, asked: Asked) -> tuple[Any, Any, tuple[Bound, ...]]:
    """What a check wants of the host, its limits, and both as bounds: the same for all subjects."""
    check = asked.check
    if check.id not in desk.in_force:
        want, wanted = want_for(check, desk.host, desk.machine.platform)
        limits, thresholds = limits_for(check, desk.host, asked.params)
        desk.in_force[check.id] = want, limits, wanted + thresholds
    return desk.in_force[check.id]


def _as_advice(finding: Finding) -> Finding:
    verdict = finding.verdict
    if verdict.status is not Status.FAIL:
        return finding
    return replace(finding, verdict=replace(verdict, status=Status.WARN))


def unjudged(error: str, reason: str, remedy: str = "") -> Verdict:
    """What is said where something stopped the judgement. ``error``: the class of what did."""
    line = " ".join(reason.split()) or error
    return Verdict(
        status=Status.ERROR,
        kind=Kind.CHECK,
        reason=f"{line}; {remedy}" if remedy else line,
        error=error,
    )

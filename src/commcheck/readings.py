"""Readings of one host: each had once and shared, each failure a class of its own. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from commcheck.check import (
    EARLIER,
    WATCH,
    EveryRail,
    Reader,
    Reading,
    Span,
    Unread,
    Watched,
)
from commcheck.collect.base import Frame, Request, State
from commcheck.command import Output, clean
from commcheck.errors import (
    CommandMissing,
    CommandNotRun,
    CommandTimedOut,
    OutputTruncated,
    SudoRefused,
    Unjudgeable,
)
from commcheck.lazy import dataclass
from commcheck.model import (
    Bound,
    Evidence,
    Finding,
    Host,
    Machine,
    Status,
    Subject,
    Verdict,
)
from commcheck.plan import (
    Known,
    first_port,
    present_rails,
    requests_of,
)

EVIDENCE_CAP = 4096
"""Characters of a command's output kept beside a verdict: the whole is in the host's frames."""

NOT_FOUND_RC = 127
MISSING_RC = (126, NOT_FOUND_RC)
"""POSIX: found but not executable, not found."""

_NO_PROGRAM = ("not found", "No such file or directory")

Decode = Callable[[bytes], str]

RestsOn = dict[str, bool]
"""Keys of the commands a verdict rests on; False: a fallback that did not speak."""

Parsed = dict[tuple[int, tuple[Output, ...]], Any]
"""What equal answers were read as, over all hosts of a run: a fleet mostly says the same."""

_NEW = object()

PARSED_MOST = 4096
PARSED_CHARS = 16_384
"""Bounds of that memory: this many answers, none longer than this."""


@dataclass(slots=True)
class Desk:
    """What is known of one host while it is judged: frames in, readings and findings kept."""

    host: Host
    machine: Machine
    frames: Mapping[str, Frame]
    decode: Decode
    parsed: Parsed
    known: Known
    outputs: dict[str, Output] = field(default_factory=dict)
    read: dict[tuple[int, str, str], Any] = field(default_factory=dict)
    in_force: dict[str, tuple[Any, Any, tuple[Bound, ...]]] = field(default_factory=dict)
    findings: dict[str, list[Finding]] = field(default_factory=dict)
    unproven: dict[int, tuple[str, ...]] = field(default_factory=dict)  # below a layer's height


def take(desk: Desk, reading: Reading[Any], subject: Subject, rests_on: RestsOn) -> object:
    """A reading, or ``Unread`` where it was optional; raises ``Unjudgeable``."""
    if reading.every_rail:
        one = replace(reading, every_rail=False)
        rails = present_rails(desk.machine)
        read = {rail.label: take(desk, one, first_port(rail), rests_on) for rail in rails}
        return EveryRail(read)
    try:
        return _first(desk, reading, subject, rests_on)
    except Unjudgeable as error:
        if reading.required:
            raise
        return Unread(error.reason, error.type_name, error.remedy)


def _first(desk: Desk, reading: Reading[Any], subject: Subject, rests_on: RestsOn) -> object:
    refused: list[Unjudgeable] = []
    # A tool for other cards has a place that this one cannot fill: it is no way to the reading.
    readers = reading.reader.readers
    if len(readers) > 1:
        phase = reading.phases[0]
        able = tuple(each for each in readers if _asked(desk, each, subject, phase))
        readers = able or readers
    for reader in readers:
        try:
            if reading.at == WATCH:
                return _watch(desk, reader, subject, rests_on)
            return _read(desk, reader, subject, reading.at, rests_on)
        except Unjudgeable as error:
            refused.append(error)
        if len(refused) < len(readers):
            for phase in reading.phases:
                for request in _asked(desk, reader, subject, phase):
                    rests_on[request.key] = False
    if len(refused) == 1:
        raise refused[0]
    raise _together(readers, refused)


def _watch(desk: Desk, reader: Reader[Any], subject: Subject, rests_on: RestsOn) -> Watched[Any]:
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


def _begun_s(desk: Desk, reader: Reader[Any], subject: Subject, at: str) -> float:
    """When its first command began, in seconds since the host's boot."""
    request = _asked(desk, reader, subject, at)[0]
    return desk.frames[request.key].started_s


def _together(readers: Sequence[Reader[Any]], refused: Sequence[Unjudgeable]) -> Unjudgeable:
    """One error for several fallbacks: the class of the first that was more than missing."""
    telling = next((e for e in refused if not isinstance(e, CommandMissing)), refused[0])
    reasons = "; ".join(error.reason for error in refused)
    return Unjudgeable(
        f"none of {' or '.join(reader.tool for reader in readers)} spoke: {reasons}",
        telling.remedy,
        type_name=telling.type_name,
    )


def _read(
    desk: Desk,
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


def _asked(desk: Desk, reader: Reader[Any], subject: Subject, at: str) -> tuple[Request, ...]:
    """What the host was asked for a reading."""
    return requests_of(reader, subject, desk.machine, at, desk.known)


def _parse(desk: Desk, reader: Reader[Any], keys: Sequence[str]) -> object:
    outputs = tuple(_output(desk, key) for key in keys)
    for key, output in zip(keys, outputs, strict=True):
        _require_answer(desk.frames[key], output, reader)
    size = sum(len(output.stdout) + len(output.stderr) for output in outputs)
    if size > PARSED_CHARS or reader.varies:
        return reader.read(*outputs)
    memo = (id(reader), outputs)
    value = desk.parsed.get(memo, _NEW)  # one look: what is looked up must be hashed whole
    if value is _NEW:
        if len(desk.parsed) >= PARSED_MOST:
            desk.parsed.clear()
        value = desk.parsed[memo] = reader.read(*outputs)
    return value


def _output(desk: Desk, key: str) -> Output:
    if key not in desk.frames:
        raise CommandNotRun(f"not recorded: {key.partition(': ')[2]} was not run on this host")
    if key not in desk.outputs:
        desk.outputs[key] = output_of(desk.frames[key], desk.decode)
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
        raise _not_started(command.removeprefix("sudo ").split()[0], frame.rc, output.complaint)
    if output.truncated and not reader.reads_cut_output:
        raise OutputTruncated(f"{command} printed more than its cap, and was cut")


def _not_started(program: str, rc: int, complaint: str) -> CommandMissing:
    """A shell says 127 of a program that is not there, a loader of one that lacks a library."""
    if rc == NOT_FOUND_RC and complaint.endswith(_NO_PROGRAM) and "shared" not in complaint:
        return CommandMissing(
            f"{program} is not there", f"install {program}, or add its folder to commcheck_path"
        )
    return CommandMissing(
        f"{program} does not start (exit code {rc}: {complaint})",
        f"run {program} by hand: a permission or a library is missing",
    )


def output_of(frame: Frame, decode: Decode) -> Output:
    """A frame as text."""
    return Output(
        stdout=decode(frame.stdout),
        stderr=decode(frame.stderr),
        rc=0 if frame.rc is None else frame.rc,
        truncated=frame.truncated,
    )


def evidence(desk: Desk, rests_on: RestsOn, verdict: Verdict) -> tuple[Evidence, ...]:
    """The commands behind a verdict. What passed shows no output: it is in the host's frames."""
    shown = verdict.status is not Status.PASS
    return tuple(
        evidence_of(frame, head_of(_output(desk, key)) if shown else "", used=used)
        for key, used in rests_on.items()
        if (frame := desk.frames.get(key)) is not None
    )


def evidence_of(frame: Frame, head: str, *, used: bool = True) -> Evidence:
    """One command as a report shows it. ``used``: False for a fallback that did not speak."""
    return Evidence(
        key=frame.key,
        rc=frame.rc,
        seconds=round(max(0.0, frame.ended_s - frame.started_s), 3),
        head=head,
        truncated=frame.truncated,
        used=used,
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

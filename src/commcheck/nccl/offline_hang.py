"""A hang, from files: what ``commcheck analyze hang`` does.

Dumps of PyTorch's flight recorder, one a rank, and saved reports of NCCL's RAS service.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import IO, Final

from commcheck.analysis import Analysis
from commcheck.errors import ParseError, UsageError
from commcheck.lazy import dataclass, regex
from commcheck.model import Evidence, Finding, Result, Verdict
from commcheck.nccl import flight, flight_groups, flight_rules, ras, ras_rules, running
from commcheck.nccl.inputs import Given, read_all
from commcheck.nccl.ras_rules import Poll
from commcheck.report.counts import many
from commcheck.report.record import JOB, PlannedCheck

_TAKEN: Final = regex(r'"timestamp"\s*:\s*"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"')


@dataclass(slots=True)
class _Found:
    """What the files hold."""

    dumps: list[flight.Dump] = field(default_factory=list)
    polls: list[tuple[str, Poll]] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def analyse_hang(
    paths: Sequence[str], *, stdin: IO[bytes] | None = None, frames: bool = False
) -> Analysis:
    """Names the first collective that diverges and the ranks that are missing.

    ``frames``: show file and line of the callers, which are the user's own code. Raises
    ``UsageError`` where a file asks for more than data, or none is a dump or a report.
    """
    found = _Found()
    for given in read_all(paths, stdin):
        _sort(given, found)
    if found.refused:
        raise UsageError(*found.refused)
    if not found.dumps and not found.polls:
        names = found.others[:20] or list(paths)
        raise UsageError(
            *(f"{name}: no dump of a flight recorder, and no RAS report" for name in names)
        )
    dumps = flight_groups.by_rank(found.dumps)
    if not frames:
        dumps = {rank: flight.without_frames(dump) for rank, dump in dumps.items()}
    results, checks = [], []
    if found.dumps:
        checks.append(PlannedCheck(running.ID, running.TITLE))
        results.append(
            _result(running.ID, flight_rules.judge(dumps), [d.source for d in found.dumps])
        )
    if found.polls:
        found.polls.sort(key=lambda each: (each[1].at_s or 0.0, each[0]))
        checks.append(PlannedCheck(ras_rules.ID, ras_rules.TITLE))
        verdicts = ras_rules.judge([poll for _, poll in found.polls])
        results.append(_result(ras_rules.ID, verdicts, [name for name, _ in found.polls]))
    return Analysis(
        checks=tuple(checks),
        results=tuple(results),
        notes=_notes(found, dumps),
        screen=_screen(found, dumps),
        facts=_facts(found, dumps),
    )


def _sort(given: Given, found: _Found) -> None:
    try:
        dump = flight.read(given.data, given.name)
    except UsageError as error:
        found.refused += error.problems
        return
    if dump is not None:
        found.dumps.append(dump)
        return
    text = "" if b"\0" in given.data else given.text
    if not ras.looks_like(text):
        found.others.append(given.name)
        return
    try:
        report = ras.parse_text(text)
    except ParseError as error:
        found.refused.append(f"{given.name}: {error.reason}")
        return
    taken = _TAKEN.search(text)
    at_s = given.changed_s
    if taken:
        # Local time without a zone: only differences are used.
        with contextlib.suppress(ValueError):  # a month 13
            at_s = datetime.fromisoformat(taken[1]).replace(tzinfo=UTC).timestamp()
    found.polls.append((given.name, Poll(report, at_s)))


def _result(check: str, verdicts: Sequence[Verdict], sources: Sequence[str]) -> Result:
    findings = tuple(
        Finding(
            check=check,
            host=JOB,
            subject="",
            verdict=verdict,
            evidence=tuple(Evidence(source, None, 0.0, "") for source in sources[:8]),
        )
        for verdict in verdicts
    )
    return Result(check=check, host=JOB, findings=findings)


def _notes(found: _Found, dumps: Mapping[int, flight.Dump]) -> tuple[str, ...]:
    notes = []
    for group in flight_groups.groups(dumps) if dumps else ():
        if group.silent:
            missing = flight_groups.some(list(group.silent))
            notes.append(
                f"group {group.label}: nothing is recorded of {missing}: often the culprit"
            )
    for dump in found.dumps:
        if dump.rank is None:
            notes.append(f"{dump.source}: the name tells no rank: left out")
        elif dumps[dump.rank].source != dump.source:
            notes.append(f"{dump.source}: rank {dump.rank} is there already: left out")
    if any(dump.backend and dump.backend not in flight_groups.WATCHED for dump in dumps.values()):
        notes.append("this backend has no watchdog: states prove nothing, only what was called")
    notes += [f"{name}: neither a dump nor a report: not read" for name in found.others[:20]]
    return tuple(notes)


def _screen(found: _Found, dumps: Mapping[int, flight.Dump]) -> tuple[str, ...]:
    lines = []
    if dumps:
        first = next(iter(dumps.values()))
        library = f", library {first.library}" if first.library else ""
        lines.append(
            f"flight recorders of {many(len(dumps), 'rank')} (version {first.version}{library})"
        )
    for group in flight_groups.groups(dumps)[:8] if dumps else ():
        newest = [max(of, default=0) for of in group.entries.values()]
        is_collective = any(newest)
        what = f"newest collective {min(newest)} to {max(newest)}" if is_collective else "transfers"
        members = f"{len(group.entries)} of {many(len(group.members), 'member')}"
        lines.append(f"group {group.label}: {members}, {what}")
    if found.polls:
        lines.append(f"{many(len(found.polls), 'report')} of NCCL's RAS service")
    return tuple(lines)


def _facts(found: _Found, dumps: Mapping[int, flight.Dump]) -> dict[str, object]:
    return {
        "dumps": [
            {
                "source": dump.source,
                "rank": rank,
                "version": dump.version,
                "library": dump.library,
                "backend": dump.backend,
                "entries": len(dump.entries),
                "newest": {
                    name: max(e.seq for e in dump.entries if e.group == name and not e.is_p2p)
                    for name in sorted({e.group for e in dump.entries if not e.is_p2p})
                },
            }
            for rank, dump in sorted(dumps.items())
        ],
        "reports": [
            {
                "source": name,
                "version": poll.report.version,
                "gpus": poll.report.gpus,
                "dead": [str(proc) for proc in poll.report.dead],
                "unreachable": [str(proc) for proc in poll.report.unreachable],
                "communicators": [
                    {"id": comm.id, "size": comm.size, "problems": sorted(comm.problems)}
                    for comm in poll.report.comms[:200]
                ],
            }
            for name, poll in found.polls
        ],
    }

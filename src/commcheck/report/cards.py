"""What a report says of one cause, and of one reason why something was not judged."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final

from commcheck.diagnose import Diagnosis, Group, fails, hosts_of, presentation, slug_of
from commcheck.lazy import dataclass
from commcheck.model import Bound, Finding, Kind, Layer, Status, Words
from commcheck.report.evidence import Shelf, Shown, typical
from commcheck.report.junit import anchor
from commcheck.report.ranges import fold_hosts
from commcheck.report.record import Record
from commcheck.report.words import MARKS, Mark, alike, measured, shown

MAX_ROWS: Final = 8
"""Different values, commands or reasons shown in one card; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Row:
    """Hosts that share something: a value seen, a command, a limit, a reason."""

    text: str
    hosts: tuple[str, ...]
    subjects: str = ""  # the rails or accelerators, folded
    origin: str = ""  # of a limit: where it was set
    varies: bool = False  # the text is one example of several that differ in numbers


@dataclass(frozen=True, slots=True)
class Rows:
    """The first of many rows, and how many more there are."""

    rows: tuple[Row, ...]
    more: int = 0

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Rows:
        """Rows of most hosts first; equal ones in the order they came."""
        ordered = sorted(rows, key=lambda row: -len(row.hosts))
        return cls(tuple(ordered[:MAX_ROWS]), max(0, len(ordered) - MAX_ROWS))


@dataclass(frozen=True, slots=True)
class Step:
    """A remedy: what it does, what must be so first, who may do it, and its commands by host."""

    effect: Words
    precondition: Words
    who: str
    commands: Rows


@dataclass(frozen=True, slots=True)
class Card:
    """A cause on all the hosts that have it. ``below``: the lowest layer that breaks on one of
    them, where that is a lower one.
    """

    id: str
    mark: Mark
    group: Group
    check_title: Words
    example: str  # whose reason is told
    below: Layer | None
    values: Rows
    limits: Rows
    steps: tuple[Step, ...]
    evidence: tuple[Shown, ...]
    evidence_of: str
    unproven_below: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that was not judged, and why; ``word`` is the error's class, if it is one."""

    mark: Mark
    word: str
    checks: tuple[str, ...]
    hosts: tuple[str, ...]
    reasons: Rows
    evidence: tuple[Shown, ...]
    evidence_of: str


def slug(text: str) -> str:
    """A text as part of an id: ASCII letters, digits, ``.``, ``_``, ``-``. One to one."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:80]
    if plain == text:
        return plain
    return f"{plain}-{sha256(text.encode('utf-8', 'backslashreplace')).hexdigest()[:8]}"


def cause_id(finding: Finding) -> str:
    """The anchor of a finding's card."""
    return _id(finding.check, finding.verdict.status, slug_of(finding))


def _id(check: str, status: Status, cause: str) -> str:
    suffix = "" if status is Status.FAIL else f"-{status.value}"
    return f"cause-{slug(anchor(check))}-{slug(cause)}{suffix}"


# --- causes -------------------------------------------------------------------------------------


def cards(record: Record, diagnosis: Diagnosis, shelf: Shelf) -> tuple[Card, ...]:
    """A card for each fail and warning of the diagnosis, in its order."""
    members = _members(record)
    titles = {check.id: check.title for check in record.plan.checks}
    failing = [each for each in diagnosis.groups if fails(each.status, strict=record.info.strict)]

    def below(group: Group) -> Layer | None:
        """What breaks on other hosts has no consequence here."""
        here = set(group.hosts)
        layers = [each.layer for each in failing if here.intersection(each.hosts)]
        lowest = min(layers, key=lambda layer: layer.height, default=group.layer)
        return lowest if lowest.height < group.layer.height else None

    return tuple(
        _card(group, members[(group.check, group.status, group.slug)], titles, below(group), shelf)
        for group in diagnosis.groups
        if group.status in (Status.FAIL, Status.WARN)
    )


_Key = tuple[str, Status, str]


def _members(record: Record) -> dict[_Key, list[Finding]]:
    members: defaultdict[_Key, list[Finding]] = defaultdict(list)
    for result in record.sorted:
        for finding in result.findings:
            if finding.verdict.status in (Status.FAIL, Status.WARN):
                members[(finding.check, finding.verdict.status, slug_of(finding))].append(finding)
    return members


def _card(
    group: Group,
    findings: Sequence[Finding],
    titles: dict[str, Words],
    below: Layer | None,
    shelf: Shelf,
) -> Card:
    example = typical(findings)
    return Card(
        id=_id(group.check, group.status, group.slug),
        mark=MARKS[group.status.value],
        group=group,
        check_title=titles.get(group.check, group.title),
        example=group.hosts[0],
        below=below,
        values=_values(findings),
        limits=_limits(findings),
        steps=_steps(findings),
        evidence=shelf.of(example) if example else (),
        evidence_of=example.host if example else "",
        unproven_below=tuple(
            dict.fromkeys(check for finding in findings for check in finding.unproven_below)
        ),
    )


def _values(findings: Sequence[Finding]) -> Rows:
    """Values seen, by who has them: hosts that agree on value and rails share a row."""
    by_host: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for finding in findings:
        if finding.verdict.measured:
            by_host[(measured(finding.verdict.measured), finding.host)].append(finding.subject)
    rows: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for (text, host), subjects in by_host.items():
        rows[(text, fold_hosts(filter(None, subjects)))].append(host)
    return Rows.of(Row(text, tuple(hosts), subjects) for (text, subjects), hosts in rows.items())


def _limits(findings: Sequence[Finding]) -> Rows:
    """What was wanted and the thresholds in force, each with the place where it was set."""
    rows: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for finding in findings:
        for bound in finding.bounds:
            rows[(_limit(bound), bound.origin)].update(dict.fromkeys(hosts_of(finding)))
    return Rows.of(Row(text, tuple(hosts), origin=origin) for (text, origin), hosts in rows.items())


def _limit(bound: Bound) -> str:
    return f"{bound.name} = {shown(bound.value)}{' ' + bound.unit if bound.unit else ''}"


def _steps(findings: Sequence[Finding]) -> tuple[Step, ...]:
    """Remedies in the order of the cause, the least drastic first; commands grouped by hosts."""
    steps: dict[tuple[int, Words, Words, str], dict[str, dict[str, None]]] = {}
    for finding in findings:
        for place, remedy in enumerate(finding.verdict.remedies):
            key = (place, remedy.effect, remedy.precondition, remedy.who)
            hosts = steps.setdefault(key, {}).setdefault(remedy.command, {})
            hosts.update(dict.fromkeys(hosts_of(finding)))
    return tuple(
        Step(effect, precondition, who, _commands(commands))
        for (_, effect, precondition, who), commands in sorted(
            steps.items(), key=lambda item: item[0][0]
        )
    )


def _commands(commands: Mapping[str, Iterable[str]]) -> Rows:
    """Commands, one a line, that are for the same hosts: to be copied and pasted together."""
    lines: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for command, hosts in commands.items():
        if command:
            lines[tuple(hosts)].append(command)
    return Rows.of(Row("\n".join(texts), hosts) for hosts, texts in lines.items())


# --- what was not judged ------------------------------------------------------------------------

_GAPS: Final = ("error", Kind.UNDECIDABLE, Kind.BUSY, Kind.NOT_PERMITTED, Kind.WAIVED)
"""Presentation words of what a reader must know was not judged, worst first."""


_GapKey = tuple[str, str, tuple[str, ...], Rows]  # word, error class, hosts, reasons


def gaps(record: Record, shelf: Shelf) -> tuple[Gap, ...]:
    """What was not judged, folded: checks that miss the same hosts for one reason are one gap."""
    by_check: defaultdict[tuple[str, str, str, str], list[Finding]] = defaultdict(list)
    for result in record.sorted:
        for finding in result.findings:
            if finding.verdict.status not in (Status.ERROR, Status.SKIP):
                continue
            word = presentation(finding)
            if word in _GAPS:
                error = slug_of(finding) if word == "error" else ""
                # Reasons of one check differ by host; kinds that a rule decides share theirs.
                telling = "" if word == "error" else alike(finding.verdict.reason)
                by_check[(word, error, telling, finding.check)].append(finding)
    merged: dict[_GapKey, list[str]] = {}
    examples: dict[_GapKey, Finding] = {}
    for (word, error, _, check), findings in by_check.items():
        hosts = tuple(dict.fromkeys(host for finding in findings for host in hosts_of(finding)))
        key = (word, error, hosts, _reasons(findings))
        merged.setdefault(key, []).append(check)
        examples.setdefault(key, typical(findings) or findings[0])

    def order(key: _GapKey) -> tuple[bool, int, int, int]:
        lowest = Layer.of(merged[key][0]).height
        whole_host = examples[key].verdict.kind is Kind.HOST
        return not whole_host, lowest, _GAPS.index(key[0]), -len(key[2])

    return tuple(
        Gap(
            mark=MARKS[key[0]],
            word=key[1],
            checks=tuple(merged[key]),
            hosts=key[2],
            reasons=key[3],
            evidence=shelf.of(examples[key]),
            evidence_of=examples[key].host,
        )
        for key in sorted(merged, key=order)
    )


def _reasons(findings: Sequence[Finding]) -> Rows:
    """One row for reasons that differ in numbers only (addresses, ports, seconds)."""
    texts: defaultdict[str, dict[str, None]] = defaultdict(dict)
    hosts: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for finding in findings:
        key = alike(finding.verdict.reason)
        texts[key][finding.verdict.reason] = None
        hosts[key].update(dict.fromkeys(hosts_of(finding)))
    return Rows.of(
        Row(next(iter(texts[key])), tuple(names), varies=len(texts[key]) > 1)
        for key, names in hosts.items()
    )

"""What a report says of one host that did not pass: its verdicts in ladder order, folded.

Hosts that say the same and have no evidence of their own (unreachable ones) share one entry.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

from commcheck.diagnose import presentation, slug_of
from commcheck.lazy import dataclass
from commcheck.model import Finding, Result, Status
from commcheck.report.cards import cause_id, slug
from commcheck.report.evidence import Shelf, Shown
from commcheck.report.ranges import fold_hosts
from commcheck.report.record import Record
from commcheck.report.switches import Ports
from commcheck.report.words import LOUD, MARKS, Mark, alike, measured

MAX_LINES: Final = 20
"""Verdicts shown of one host; a host that fails everywhere has one cause, not sixty."""


@dataclass(frozen=True, slots=True)
class Line:
    """Findings of one check on one host that say the same of several rails."""

    mark: Mark
    check: str
    subjects: str
    reason: str
    count: int
    measured: str
    cause: str  # anchor of its card, empty where it has none
    evidence: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class HostPage:
    """One host. ``quiet`` counts what needs no word: passed, gated, not applicable.

    ``switches``: the switch ports of the rails that need a word, ``mlx5_1: leaf-01 Ethernet12``.
    """

    name: str
    id: str
    alike: tuple[str, ...]  # other hosts of which it all holds as well
    mark: Mark
    reason: str  # of its worst verdict
    lines: tuple[Line, ...]
    more_lines: int
    quiet: tuple[tuple[Mark, int], ...]
    switches: str = ""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts shown one by one, and those only named."""

    pages: tuple[HostPage, ...]
    others: tuple[str, ...]

    @property
    def ids(self) -> Mapping[str, str]:
        """Anchors by host name, of the hosts shown."""
        return {name: page.id for page in self.pages for name in (page.name, *page.alike)}


@dataclass(slots=True)
class Drafts:
    """The findings of a host that need a word, by line, and how many checks need none."""

    lines: dict[tuple[str, ...], list[Finding]] = field(default_factory=dict)
    quiet: Counter[str] = field(default_factory=Counter)
    worst: int = len(LOUD)


Loud = list[tuple[list[str], Drafts]]
"""Hosts that did not pass, with their findings; those that say the same are together."""


def loud_hosts(record: Record) -> Loud:
    """Failing hosts first. A host that has no evidence of its own joins the first of its kind."""
    hosts: defaultdict[str, Drafts] = defaultdict(Drafts)
    for result in record.sorted:
        _add(hosts[result.host], result)
    loud = [(host, drafts) for host, drafts in hosts.items() if drafts.lines]
    entries: dict[object, tuple[list[str], Drafts]] = {}
    for host, drafts in sorted(loud, key=lambda item: item[1].worst):
        own = any(each.evidence for findings in drafts.lines.values() for each in findings)
        kind = (tuple(drafts.lines), tuple(sorted(drafts.quiet.items())))
        entries.setdefault(host if own else kind, ([], drafts))[0].append(host)
    return list(entries.values())


def host_pages(loud: Loud, shelf: Shelf, ports: Ports, *, max_hosts: int, max_lines: int) -> Hosts:
    """Hosts that did not pass, failing ones first, as many as the page can bear."""
    pages: list[HostPage] = []
    room = max_lines
    for names, drafts in loud:
        room -= min(len(drafts.lines), MAX_LINES)
        if len(pages) == max_hosts or (room < 0 and pages):
            break
        pages.append(_page(names, drafts, shelf, ports))
    others = [name for names, _ in loud[len(pages) :] for name in names]
    return Hosts(tuple(pages), tuple(others))


def _add(drafts: Drafts, result: Result) -> None:
    word = presentation(result.worst)
    if word not in LOUD:
        drafts.quiet[word] += 1
        return
    drafts.worst = min(drafts.worst, LOUD.index(word))
    for finding in result.findings:
        said = presentation(finding)
        if said in LOUD:
            verdict = finding.verdict
            key = (result.check, said, slug_of(finding), _without(finding), str(verdict.measured))
            drafts.lines.setdefault(key, []).append(finding)


def _without(finding: Finding) -> str:
    """A reason without its rail and its numbers: equal ones are told once."""
    reason = finding.verdict.reason
    return alike(reason.replace(finding.subject, "") if finding.subject else reason)


def _page(names: Sequence[str], drafts: Drafts, shelf: Shelf, ports: Ports) -> HostPage:
    groups = list(drafts.lines.values())
    worst = next(each[0] for each in groups if presentation(each[0]) == LOUD[drafts.worst])
    return HostPage(
        name=names[0],
        id=f"host-{slug(names[0])}",
        alike=tuple(names[1:]),
        mark=MARKS[LOUD[drafts.worst]],
        reason=worst.verdict.reason,
        lines=tuple(_line(findings, shelf) for findings in groups[:MAX_LINES]),
        more_lines=max(0, len(groups) - MAX_LINES),
        quiet=tuple((MARKS[word], drafts.quiet[word]) for word in MARKS if drafts.quiet.get(word)),
        switches=", ".join(
            f"{rail}: {ports[names[0], rail]}"
            for rail in dict.fromkeys(each.subject for found in groups for each in found)
            if (names[0], rail) in ports
        ),
    )


def _line(findings: Sequence[Finding], shelf: Shelf) -> Line:
    first = findings[0]
    has_card = first.verdict.status in (Status.FAIL, Status.WARN)
    return Line(
        mark=MARKS[presentation(first)],
        check=first.check,
        subjects=fold_hosts(filter(None, (finding.subject for finding in findings))),
        reason=first.verdict.reason,
        count=len(findings),
        measured=measured(first.verdict.measured),
        cause=cause_id(first) if has_card else "",
        evidence=shelf.of(first),
    )

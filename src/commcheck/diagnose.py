"""From all verdicts of all hosts to one headline: the lowest failing layer, where, why, what next.

Pure, and the only place that says what a run means; every report repeats its words.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, cast

from commcheck.conclusions import layer_word
from commcheck.headline import (
    Blind,
    Whole,
    elsewhere,
    headline,
    passes,
    proven,
    unfinished,
    unknown,
)
from commcheck.lazy import dataclass
from commcheck.model import TABLE, Finding, Kind, Layer, Remedy, Result, Status, Words, row
from commcheck.report.record import Record
from commcheck.sharing import Share, shared
from commcheck.witnesses import witnesses

BREAKS_HERE: Final = "breaks here"
FAILS_TOO: Final = "fails too"
"""Word of a failing layer above the lowest failing one."""

_RANK: Final = {Status.FAIL: 0, Status.ERROR: 1, Status.WARN: 2, Status.SKIP: 3}

_UNKNOWN: Final = frozenset({Kind.UNDECIDABLE, Kind.BUSY})


@dataclass(frozen=True, slots=True)
class Fix:
    """A remedy with its places filled in, its step in the order to try, and who needs it.

    ``subjects``: the rails and the like that it is for, as ``host/rail``.
    """

    remedy: Remedy
    hosts: tuple[str, ...]
    step: int = 0
    subjects: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The command, or what to do where no command helps; in English."""
        return self.says.en

    @property
    def says(self) -> Words:
        """The same in both languages; a command is the same in each."""
        command = self.remedy.command
        return Words(command, command) if command else self.remedy.effect


@dataclass(frozen=True, slots=True)
class Consequence:
    """What another check found that this cause explains: ``reason`` is the first host's."""

    check: str
    hosts: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Group:
    """The findings of one check that share a cause: one line of a report.

    ``slug`` is the cause's slug, the error's class, or "undecidable" or "busy" where the status
    is skip. ``reason`` is the first host's.
    """

    layer: Layer
    check: str
    status: Status
    slug: str
    title: Words
    meaning: Words | None
    reason: str
    reasons: int  # how many different ones there are
    hosts: tuple[str, ...]
    findings: int
    fixes: tuple[Fix, ...]  # least drastic step first, then the one for most hosts
    shares: tuple[Share, ...] = ()  # what its hosts have in common, of a fail or warning
    follows: tuple[Consequence, ...] = ()  # folded under it, and not counted as faults
    speaks_for: tuple[Words, ...] = ()
    speaks_against: tuple[Words, ...] = ()


@dataclass(frozen=True, slots=True)
class Rung:
    """A layer of the ladder: its word, cases by presentation word, hosts by their worst case."""

    layer: Layer
    word: str
    cases: Mapping[str, int]
    hosts: Mapping[str, int]  # "pass", "warn", "fail", "error", "gated", "skip"

    @property
    def judged(self) -> int:
        """Hosts of which the layer was judged."""
        return sum(self.hosts.get(word, 0) for word in ("pass", "warn", "fail"))


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a run means. ``status`` is fail, error, warn, skip (partly undecided) or pass.

    ``layer`` is the lowest failing layer; ``hosts`` those it fails on, or those that could not be
    judged where nothing fails; ``says_more`` are sentences that belong below the headline.
    ``proven``: what was read and is right.
    """

    status: Status
    layer: Layer | None
    says: Words  # the headline
    says_more: tuple[Words, ...]
    hosts: tuple[str, ...]
    host_count: int  # of the whole run
    unjudged: tuple[str, ...]  # hosts on which something could not be judged
    cause: Group | None
    fix: Fix | None
    groups: tuple[Group, ...]  # in the order in which to look at them
    ladder: tuple[Rung, ...]  # the four layers, bottom-up
    proven: tuple[Words, ...]

    @property
    def headline(self) -> str:
        """In English, as every machine format has it."""
        return self.says.en

    @property
    def more(self) -> tuple[str, ...]:
        """The sentences below the headline, in English."""
        return tuple(words.en for words in self.says_more)


def diagnose(record: Record) -> Diagnosis:
    """The meaning of a run, by its results alone; worked out once for all its reports."""
    if _DIAGNOSIS not in record.memo:
        record.memo[_DIAGNOSIS] = _diagnose(record)
    return cast("Diagnosis", record.memo[_DIAGNOSIS])


_DIAGNOSIS: Final = "diagnosis"


def _diagnose(record: Record) -> Diagnosis:
    strict = record.info.strict
    groups = _groups(record)
    failing = [group for group in groups if fails(group.status, strict=strict)]
    layer = min((group.layer for group in failing), key=lambda each: each.height, default=None)
    lowest = tuple(group for group in failing if group.layer is layer)
    warned = tuple(group for group in groups if group.status is Status.WARN)
    unjudged = _unjudged(record)
    count = len(record.plan.hosts) or len({result.host for result in record.sorted})
    whole = Whole(count, record.info.noun, record.plan.hosts)
    blind = Blind(len(unjudged), len(_unknown(record, unjudged)))
    hosts = _in_order({host for group in lowest for host in group.hosts}, record) or unjudged
    ladder = tuple(_rung(each, record.layers[each], layer, strict=strict) for each in Layer)
    more = [*elsewhere(failing, layer), *unfinished(record)]
    if layer is not None and unjudged:
        said = unknown(blind, whole)
        more.append(Words(f"{said.en}.", f"{said.zh}。"))
    asked: dict[Layer, list[str]] = {each: [] for each in Layer}
    for check in record.plan.checks:
        asked[check.layer].append(check.id)
    return Diagnosis(
        status=_status(record, ladder, bool(unjudged)),
        layer=layer,
        says=headline(lowest, warned, blind, ladder, whole),
        says_more=tuple(more),
        hosts=hosts,
        host_count=count,
        unjudged=unjudged,
        cause=lowest[0] if lowest else None,
        fix=lowest[0].fixes[0] if lowest and lowest[0].fixes else None,
        groups=groups,
        ladder=ladder,
        proven=proven(ladder, asked),
    )


def presentation(finding: Finding) -> str:
    """The word a report shows for a finding: its kind for a skip, else its status."""
    verdict = finding.verdict
    return _PRESENTED[verdict.status, verdict.kind]


_PRESENTED: Final = {
    (status, kind): kind.value if status is Status.SKIP else status.value for status, kind in TABLE
}


def hosts_of(finding: Finding) -> tuple[str, ...]:
    """A verdict on a group names its hosts; one on a host is that host's."""
    if finding.host.startswith("@") and finding.verdict.hosts:
        return finding.verdict.hosts
    return (finding.host,)


def slug_of(finding: Finding) -> str:
    """What a finding is grouped by: its cause's slug, or its error's class."""
    verdict = finding.verdict
    return verdict.cause.slug if verdict.cause else verdict.error or "Unjudgeable"


# --- groups -------------------------------------------------------------------------------------


def _groups(record: Record) -> tuple[Group, ...]:
    members: defaultdict[tuple[str, Status, str], list[Finding]] = defaultdict(list)
    follow: defaultdict[str, list[Finding]] = defaultdict(list)
    for result in record.sorted:
        for finding in result.findings:
            verdict = finding.verdict
            if verdict.follows:
                follow[verdict.follows].append(finding)
            elif verdict.kind in _UNKNOWN:  # it says what to turn on, so it must be seen
                members[(result.check, Status.SKIP, verdict.kind.value)].append(finding)
            elif verdict.status in (Status.FAIL, Status.WARN, Status.ERROR):
                members[(result.check, verdict.status, slug_of(finding))].append(finding)
    groups = [_group(record, *key, findings, follow[key[2]]) for key, findings in members.items()]
    stand_on = Counter(need for check in record.plan.checks for need in check.needs)
    # Of the lowest layer first, errors after fails, large before small. Of two as large, the one on
    # which more of the other checks stand: a dead link before a warm one. Those of one check stay
    # as it says them: the verdicts on a job begin with the one to blame.
    return tuple(
        sorted(
            groups,
            key=lambda group: (
                group.layer.height,
                _RANK[group.status],
                -len(group.hosts),
                -stand_on[group.check],
                group.check,
            ),
        )
    )


def _group(
    record: Record,
    check: str,
    status: Status,
    slug: str,
    findings: list[Finding],
    follow: list[Finding],
) -> Group:
    first = findings[0].verdict
    hosts = tuple(dict.fromkeys(host for finding in findings for host in hosts_of(finding)))
    judged = status in (Status.FAIL, Status.WARN)
    follows = _consequences(follow) if judged else ()
    speaks_for, against = witnesses(record, slug, hosts, follows) if judged else ((), ())
    shares: tuple[Share, ...] = ()
    if judged and record.info.noun == "host":
        shares = shared(record, check, findings, hosts)
    if first.cause and first.cause.everywhere and any(s.kind == "everything" for s in shares):
        against = (first.cause.everywhere, *against)
    return Group(
        layer=Layer.of(check),
        check=check,
        status=status,
        slug=slug,
        title=first.cause.title if first.cause else Words(first.reason, first.reason),
        meaning=first.cause.meaning if first.cause else None,
        reason=first.reason,
        reasons=len({finding.verdict.reason for finding in findings}),
        hosts=hosts,
        findings=len(findings),
        fixes=_fixes(findings),
        shares=shares,
        follows=follows,
        speaks_for=speaks_for,
        speaks_against=against,
    )


def _consequences(follow: Iterable[Finding]) -> tuple[Consequence, ...]:
    by_check: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in follow:
        by_check[finding.check].append(finding)
    return tuple(
        Consequence(
            check,
            tuple(dict.fromkeys(host for each in findings for host in hosts_of(each))),
            findings[0].verdict.reason,
        )
        for check, findings in by_check.items()
    )


def _fixes(findings: list[Finding]) -> tuple[Fix, ...]:
    """The remedies of all findings: least drastic step first, then by how many hosts need it."""
    of: defaultdict[tuple[int, Remedy], list[Finding]] = defaultdict(list)
    for finding in findings:
        for step, remedy in enumerate(finding.verdict.remedies):
            of[step, remedy].append(finding)
    fixes = [
        Fix(
            remedy,
            tuple(dict.fromkeys(host for each in some for host in hosts_of(each))),
            step,
            tuple(dict.fromkeys(f"{each.host}/{each.subject}" for each in some if each.subject)),
        )
        for (step, remedy), some in of.items()
    ]
    return tuple(sorted(fixes, key=lambda fix: (fix.step, -len(fix.hosts))))


# --- hosts --------------------------------------------------------------------------------------


def fails(status: Status, *, strict: bool) -> bool:
    """True for what is proven wrong; ``strict``: for warnings, too."""
    return status is Status.FAIL or (strict and status is Status.WARN)


def _is_unknown(finding: Finding) -> bool:
    return finding.verdict.status is Status.ERROR or finding.verdict.kind in _UNKNOWN


def _unjudged(record: Record) -> tuple[str, ...]:
    return _in_order(
        {
            host
            for result in record.sorted
            for finding in result.findings
            if _is_unknown(finding)
            for host in hosts_of(finding)
        },
        record,
    )


def _unknown(record: Record, hosts: Iterable[str]) -> set[str]:
    """Those of the hosts of which nothing at all was judged."""
    left = set(hosts)
    for result in record.sorted if left else ():
        if result.host in left and any(
            row(each.verdict).junit in ("pass", "warn", "failure")
            or each.verdict.kind is Kind.WAIVED
            for each in result.findings
        ):
            left.discard(result.host)
    return left


def _in_order(hosts: set[str], record: Record) -> tuple[str, ...]:
    planned = [host for host in record.plan.hosts if host in hosts]
    return (*planned, *sorted(hosts.difference(planned)))


# --- the ladder ---------------------------------------------------------------------------------


def _rung(layer: Layer, results: tuple[Result, ...], lowest: Layer | None, *, strict: bool) -> Rung:
    word = layer_word(results, strict=strict)
    if word == BREAKS_HERE and lowest is not None and layer is not lowest:
        word = FAILS_TOO
    by_host: defaultdict[str, set[str]] = defaultdict(set)
    for result in results:
        if not result.host.startswith("@"):
            by_host[result.host].update(map(presentation, result.findings))
    return Rung(
        layer=layer,
        word=word,
        cases=Counter(presentation(result.worst) for result in results),
        hosts=Counter(map(_host_word, by_host.values())),
    )


def _host_word(words: set[str]) -> str:
    if "fail" in words:
        return "fail"
    if words & {"error", *_UNKNOWN}:
        return "error"
    if Kind.GATED in words:
        return "gated"
    if "warn" in words:
        return "warn"
    return "pass" if words & {"pass", Kind.WAIVED} else "skip"


# --- words --------------------------------------------------------------------------------------


def _status(record: Record, ladder: tuple[Rung, ...], unjudged: bool) -> Status:
    match record.judged_code:
        case 1:
            return Status.FAIL
        case 3:
            return Status.ERROR
        case _:
            if unjudged or not any(passes(rung) for rung in ladder):
                return Status.SKIP
            warned = any(rung.cases.get("warn") for rung in ladder)
            return Status.WARN if warned else Status.PASS

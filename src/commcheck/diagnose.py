"""From all verdicts of all hosts to one headline: the lowest failing layer, where, why, what next.

Pure, and the only place that says what a run means; every report repeats its words.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, cast

from commcheck.model import Finding, Kind, Layer, Remedy, Result, Status, Words, layer_word
from commcheck.report.record import Record

BREAKS_HERE: Final = "breaks here"
FAILS_TOO: Final = "fails too"
"""Word of a failing layer above the lowest failing one."""

_RANK: Final = {Status.FAIL: 0, Status.ERROR: 1, Status.WARN: 2, Status.SKIP: 3}

_UNKNOWN: Final = frozenset({Kind.UNDECIDABLE, Kind.BUSY})


@dataclass(frozen=True, slots=True)
class Fix:
    """A remedy with its places filled in, its step in the order to try, and who needs it."""

    remedy: Remedy
    hosts: tuple[str, ...]
    step: int = 0

    @property
    def text(self) -> str:
        """The command, or what to do where no command helps."""
        return self.remedy.command or self.remedy.effect.en


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
    judged where nothing fails; ``more`` are sentences that belong below the headline.
    """

    status: Status
    layer: Layer | None
    headline: str
    more: tuple[str, ...]
    hosts: tuple[str, ...]
    host_count: int  # of the whole run
    unjudged: tuple[str, ...]  # hosts on which something could not be judged
    cause: Group | None
    fix: Fix | None
    groups: tuple[Group, ...]  # of the lowest layer first, large before small, errors after fails
    ladder: tuple[Rung, ...]  # the four layers, bottom-up


def diagnose(record: Record) -> Diagnosis:
    """The meaning of a run, by its results alone; worked out once for all its reports."""
    if _DIAGNOSIS not in record.memo:
        record.memo[_DIAGNOSIS] = _diagnose(record)
    return cast("Diagnosis", record.memo[_DIAGNOSIS])


_DIAGNOSIS: Final = "diagnosis"


def _diagnose(record: Record) -> Diagnosis:
    results = record.sorted
    strict = record.info.strict
    groups = _groups(results)
    failing = [group for group in groups if _fails(group.status, strict=strict)]
    layer = min((group.layer for group in failing), key=lambda each: each.height, default=None)
    lowest = tuple(group for group in failing if group.layer is layer)
    unjudged = _unjudged(record)
    count = len(record.plan.hosts) or len({result.host for result in results})
    whole = _Whole(count, record.info.noun)
    hosts = _in_order({host for group in lowest for host in group.hosts}, record) or unjudged
    ladder = tuple(_rung(each, record.layers[each], layer, strict=strict) for each in Layer)
    more = [*_elsewhere(failing, layer), *_unfinished(record)]
    if layer is not None and unjudged:
        more.append(f"{_of(len(unjudged), whole)} could not be judged in full.")
    return Diagnosis(
        status=_status(record, ladder, bool(unjudged)),
        layer=layer,
        headline=_headline(lowest, len(unjudged), ladder, whole),
        more=tuple(more),
        hosts=hosts,
        host_count=count,
        unjudged=unjudged,
        cause=lowest[0] if lowest else None,
        fix=lowest[0].fixes[0] if lowest and lowest[0].fixes else None,
        groups=groups,
        ladder=ladder,
    )


def presentation(finding: Finding) -> str:
    """The word a report shows for a finding: its kind for a skip, else its status."""
    verdict = finding.verdict
    return verdict.kind.value if verdict.status is Status.SKIP else verdict.status.value


def layer_title(layer: Layer) -> str:
    """``Physical layer``."""
    return f"{layer.value.capitalize()} layer"


# --- groups -------------------------------------------------------------------------------------


def _groups(results: Iterable[Result]) -> tuple[Group, ...]:
    members: defaultdict[tuple[str, Status, str], list[Finding]] = defaultdict(list)
    for result in results:
        for finding in result.findings:
            verdict = finding.verdict
            if verdict.kind in _UNKNOWN:  # it says what to turn on, so it must be seen
                members[(result.check, Status.SKIP, verdict.kind.value)].append(finding)
            elif verdict.status in (Status.FAIL, Status.WARN, Status.ERROR):
                slug = verdict.cause.slug if verdict.cause else verdict.error or "Unjudgeable"
                members[(result.check, verdict.status, slug)].append(finding)
    groups = [_group(*key, findings) for key, findings in members.items()]
    return tuple(
        sorted(
            groups,
            key=lambda group: (
                group.layer.height,
                _RANK[group.status],
                -len(group.hosts),
                group.check,
                group.slug,
            ),
        )
    )


def _group(check: str, status: Status, slug: str, findings: list[Finding]) -> Group:
    first = findings[0].verdict
    return Group(
        layer=Layer.of(check),
        check=check,
        status=status,
        slug=slug,
        title=first.cause.title if first.cause else Words(first.reason, first.reason),
        meaning=first.cause.meaning if first.cause else None,
        reason=first.reason,
        reasons=len({finding.verdict.reason for finding in findings}),
        hosts=tuple(dict.fromkeys(host for finding in findings for host in _hosts_of(finding))),
        findings=len(findings),
        fixes=_fixes(findings),
    )


def _hosts_of(finding: Finding) -> tuple[str, ...]:
    """A verdict on a group names its hosts; one on a host is that host's."""
    if finding.host.startswith("@") and finding.verdict.hosts:
        return finding.verdict.hosts
    return (finding.host,)


def _fixes(findings: list[Finding]) -> tuple[Fix, ...]:
    """The remedies of all findings: least drastic step first, then by how many hosts need it."""
    hosts: defaultdict[tuple[int, Remedy], dict[str, None]] = defaultdict(dict)
    for finding in findings:
        for step, remedy in enumerate(finding.verdict.remedies):
            hosts[step, remedy].update(dict.fromkeys(_hosts_of(finding)))
    fixes = [Fix(remedy, tuple(names), step) for (step, remedy), names in hosts.items()]
    return tuple(sorted(fixes, key=lambda fix: (fix.step, -len(fix.hosts))))


# --- hosts --------------------------------------------------------------------------------------


def _fails(status: Status, *, strict: bool) -> bool:
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
            for host in _hosts_of(finding)
        },
        record,
    )


def _in_order(hosts: set[str], record: Record) -> tuple[str, ...]:
    planned = [host for host in record.plan.hosts if host in hosts]
    return (*planned, *sorted(hosts.difference(planned)))


# --- the ladder ---------------------------------------------------------------------------------


def _rung(layer: Layer, results: tuple[Result, ...], lowest: Layer | None, *, strict: bool) -> Rung:
    word = layer_word(results, strict=strict)
    if word == BREAKS_HERE and lowest is not None and layer is not lowest:
        word = FAILS_TOO
    by_host: defaultdict[str, list[Finding]] = defaultdict(list)
    for result in results:
        if not result.host.startswith("@"):
            by_host[result.host].extend(result.findings)
    return Rung(
        layer=layer,
        word=word,
        cases=Counter(presentation(result.worst) for result in results),
        hosts=Counter(_host_word(findings) for findings in by_host.values()),
    )


def _host_word(findings: list[Finding]) -> str:
    words = {presentation(finding) for finding in findings}
    if "fail" in words:
        return "fail"
    if any(_is_unknown(finding) for finding in findings):
        return "error"
    if Kind.GATED in words:
        return "gated"
    if "warn" in words:
        return "warn"
    return "pass" if words & {"pass", Kind.WAIVED} else "skip"


# --- words --------------------------------------------------------------------------------------


def _status(record: Record, ladder: tuple[Rung, ...], unjudged: bool) -> Status:
    match record.exit_code:
        case 1:
            return Status.FAIL
        case 3:
            return Status.ERROR
        case _:
            if unjudged or not any(_passes(rung) for rung in ladder):
                return Status.SKIP
            warned = any(rung.cases.get("warn") for rung in ladder)
            return Status.WARN if warned else Status.PASS


def _passes(rung: Rung) -> bool:
    return rung.word.split(",")[0] == "pass"


@dataclass(frozen=True, slots=True)
class _Whole:
    """What a run is about: how many of what."""

    count: int
    noun: str

    def __str__(self) -> str:
        return many(self.count, self.noun)


def _headline(
    lowest: tuple[Group, ...], unjudged: int, ladder: tuple[Rung, ...], whole: _Whole
) -> str:
    if lowest:
        others = len(lowest) - 1
        rest = f", and {many(others, 'more cause')}" if others else ""
        where = f", {_of(len(lowest[0].hosts), whole)}"
        if whole.noun != "host" and whole.count == 1:
            where = ""  # one file, or a job as a whole: it is the only place
        title = layer_title(lowest[0].layer)
        return f"{title} is where it breaks: {lowest[0].title.en}{where}{rest}"
    if unjudged:
        return f"No failure found, but {_of(unjudged, whole)} could not be judged"
    return _good_headline(ladder, whole)


def _good_headline(ladder: tuple[Rung, ...], whole: _Whole) -> str:
    passing = [rung.layer for rung in ladder if _passes(rung)]
    tail = ""
    if unmeasured := sum(rung.cases.get(Kind.NOT_PERMITTED, 0) for rung in ladder):
        tail = f"; {many(unmeasured, 'case')} not measured (not permitted)"
    if len(passing) == len(Layer):
        return f"All four layers pass on {whole}{tail}"
    others: defaultdict[str, list[str]] = defaultdict(list)
    for rung in ladder:
        if not _passes(rung):
            others[rung.word].append(rung.layer.value)
    rest = "; ".join(
        f"{', '.join(layers)} {_NEITHER[word][len(layers) > 1]}" for word, layers in others.items()
    )
    if not passing:
        return f"Nothing was judged on {whole}: {rest}"
    names = ", ".join(layer.value for layer in passing).capitalize()
    verb = "layer passes" if len(passing) == 1 else "layers pass"
    if whole.noun != "host":
        return f"{names} {verb} on {whole}"  # nobody asked for the other layers
    return f"{names} {verb} on {whole}; {rest}{tail}"


_NEITHER: Final = {
    # The words of a layer that neither passes nor has anything that could not be judged.
    "not climbed": ("was not climbed", "were not climbed"),
    "not measured": ("was not measured", "were not measured"),
    "not applicable": ("does not apply", "do not apply"),
    "partly judged": ("was partly judged", "were partly judged"),
    "pass so far": ("was not judged everywhere", "were not judged everywhere"),
}


def _elsewhere(failing: list[Group], lowest: Layer | None) -> list[str]:
    """Other hosts that break first higher up: one sentence a layer."""
    seen = {host for group in failing if group.layer is lowest for host in group.hosts}
    sentences = []
    for layer in Layer:
        hosts = {host for group in failing if group.layer is layer for host in group.hosts} - seen
        if hosts and layer is not lowest:
            verb = "breaks" if len(hosts) == 1 else "break"
            sentences.append(
                f"{many(len(hosts), 'other host')} {verb} first at the {layer.value} layer."
            )
        seen |= hosts
    return sentences


def _unfinished(record: Record) -> list[str]:
    missing = record.plan.size - len(
        {(result.host, result.check) for result in record.results}
        & {(host, check) for host, checks in record.plan.cases.items() for check in checks}
    )
    if record.state == "complete":
        return []
    how = "was interrupted" if record.state == "interrupted" else "did not end by itself"
    cases = f"{missing:,} of {many(record.plan.size, 'planned case')}"
    return [f"Incomplete: the run {how}, {cases} were not judged."]


def many(count: int, noun: str) -> str:
    """``1 host``, ``1,912 hosts``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _of(count: int, whole: _Whole) -> str:
    return f"{count:,} of {whole}"

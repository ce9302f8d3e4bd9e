"""Hosts that should be alike: what one of them has otherwise than most of its peers. Pure.

A check that compares ends in ``to_compare`` on every subject: its traits, a few plain values, go
into the result, and no more than that is kept of a host. When all hosts were judged, ``compare``
turns those results into verdicts. It needs nothing but results, so a run that is merged, resumed
or judged again from stored frames comes to the same.

Peers are the hosts of one platform in one ``commcheck_peers`` group, by default the deepest group
that fixes the platform, and of them those that take part: what a limit leaves out is no peer.
A majority is more than half of at least three. Of two that differ nobody can say which one is odd,
and that they differ is said of both. Rails are compared with the rail of the same name.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from commcheck.check import UNREAD, AnyCheck, Trait, fitting, remedies_for
from commcheck.lazy import dataclass
from commcheck.model import Finding, Host, Kind, Rail, Result, Status, Subject, Verdict
from commcheck.report.ranges import natural

GROUP: Final = "peers"
PLATFORM: Final = "platform"
DRIVER: Final = "kernel_driver"
"""Keys under which the engine adds to the traits whose peer the host is, and of a rail the kernel
driver of its card, where it is known: under a name that no check has for a trait."""

VARIABLE: Final = "commcheck_peers"

LEAST: Final = 3
"""Members of which a majority can say which one is odd."""


def group_of(host: Host, platform: str) -> str:
    """The name of the host's peer group."""
    declared = host.variables.get(VARIABLE)
    return str(declared) if declared not in (None, "") else host.platform_group or platform


def placed(verdict: Verdict, host: Host, platform: str, subject: Subject | None = None) -> Verdict:
    """A verdict of ``to_compare`` with the peer group it belongs to; any other as it is."""
    if verdict.kind is not Kind.UNDECIDABLE or not verdict.measured:
        return verdict
    group = {GROUP: group_of(host, platform), PLATFORM: platform}
    card = {DRIVER: subject.driver} if isinstance(subject, Rail) and subject.driver else {}
    # What a check has read is never covered: all hosts would be alike in it.
    return replace(verdict, measured={**card, **verdict.measured, **group})


def is_waiting(result: Result) -> bool:
    """True for a result that is not yet compared: ``compare`` puts another in its place."""
    return any(
        GROUP in finding.verdict.measured and finding.verdict.kind is Kind.UNDECIDABLE
        for finding in result.findings
    )


def was_read(finding: Finding) -> bool:
    """True for a subject of which every trait was read, and that only waits for its peers."""
    return GROUP in finding.verdict.measured and UNREAD not in finding.verdict.measured


@dataclass(slots=True)
class _Member:
    """One subject of one host, with its traits and what is found of them."""

    finding: Finding
    drifts: list[Verdict] = field(default_factory=list)
    alike: list[str] = field(default_factory=list)
    split: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)  # traits of which an owner said what is wrong

    def value(self, name: str) -> object:
        return self.finding.verdict.measured.get(name)


@dataclass(frozen=True, slots=True)
class _Pool:
    """The members that are compared in one trait, and the values among them."""

    trait: Trait
    members: Sequence[_Member]
    keys: Sequence[str]  # of each member's value

    @property
    def counts(self) -> list[tuple[str, int]]:
        """Values and how many have them, the most frequent first, in an order of their own."""
        return sorted(Counter(self.keys).items(), key=lambda each: (-each[1], each[0]))


def compare(
    checks: Iterable[AnyCheck], results: Sequence[Result], *, whole: bool = True
) -> tuple[Result, ...]:
    """The results that take the place of those that wait, and those of whole groups (``@gpu``).

    ``results``: all of a run; of a case judged twice the later counts. ``whole``: False for a
    shard, which does not see all peers: its hosts are compared when the shards are merged.
    """
    latest = {(result.host, result.check): result for result in results}
    done: list[Result] = []
    for check in checks:
        if not check.peers:
            continue
        mine = [
            result
            for (host, check_id), result in latest.items()
            if check_id == check.id and not host.startswith("@")
        ]
        members = {result.host: _members(result) for result in mine}
        groups: dict[str, list[Finding]] = {}
        if whole:
            groups = _compare(check, [m for each in members.values() for m in each], latest)
        done.extend(_judged(result, members[result.host], whole) for result in mine)
        done.extend(
            Result(check=check.id, host=group, findings=tuple(findings))
            for group, findings in groups.items()
        )
    return tuple(done)


def _members(result: Result) -> list[_Member]:
    """The subjects that told their traits; a drift found before told them once more."""
    by_subject = {
        finding.subject: finding for finding in result.findings if GROUP in finding.verdict.measured
    }
    return [_Member(finding) for finding in by_subject.values()]


def _compare(
    check: AnyCheck, members: Sequence[_Member], latest: Mapping[tuple[str, str], Result]
) -> dict[str, list[Finding]]:
    """Note in each member what is found of it; returns what is to be said of groups."""
    groups: dict[str, list[Finding]] = defaultdict(list)
    for trait in check.peers:
        pools: dict[tuple[str, ...], list[_Member]] = defaultdict(list)
        for member in members:
            if trait.name not in member.finding.verdict.measured:
                continue
            if _owner_found(trait, member.finding, latest):
                member.said.append(trait.title.en)
                continue
            kin = _key(member.value(trait.kin)) if trait.kin else ""
            where = (str(member.value(GROUP)), str(member.value(PLATFORM)))
            subject = "" if trait.unique else member.finding.subject
            pools[(*where, kin, subject)].append(member)
        for (group, *_), pool in sorted(pools.items(), key=lambda each: each[0]):
            if trait.unique:
                _doubled(trait, pool)
                continue
            keys = [_key(member.value(trait.name)) for member in pool]
            verdict = _settle(_Pool(trait, pool, keys))
            if verdict is not None:
                subject = pool[0].finding.subject
                finding = Finding(
                    check=check.id, host=f"@{group}", subject=subject, verdict=verdict
                )
                groups[f"@{group}"].append(finding)
    return groups


def _doubled(trait: Trait, members: Sequence[_Member]) -> None:
    """Note in each member with which others it shares what should be its own."""
    same: dict[str, list[_Member]] = defaultdict(list)
    for member in members:
        same[_key(member.value(trait.name))].append(member)
    for key, sharing in same.items():
        for member in sharing:
            mine = member.finding.host, member.value(trait.unique)
            others = [
                f"{each.finding.host} on {each.finding.subject}"
                for each in sharing
                if each.finding.host != mine[0] and each.value(trait.unique) != mine[1]
            ]
            if others:
                member.drifts.append(_shared(trait, member, key, sorted(others, key=natural)))


def _shared(trait: Trait, member: _Member, key: str, others: Sequence[str]) -> Verdict:
    told = ", ".join(others[:4]) + (f" and {len(others) - 4} more" if len(others) > 4 else "")
    return Verdict(
        status=Status.FAIL,
        reason=f"{member.finding.subject} has {trait.title.en} {_shown(key)}, as has {told}; "
        "want one of its own",
        cause=trait.cause,
        remedies=fitting(
            remedies_for(trait.cause, member.finding.verdict.measured), member.value(DRIVER)
        ),
        rule=trait.name,
        measured=member.finding.verdict.measured,
    )


def _settle(pool: _Pool) -> Verdict | None:
    """Compare one pool; returns a verdict on the group where no value has a majority."""
    counts = pool.counts
    total = len(pool.members)
    if total < LEAST and len(counts) < 2:
        return None
    most, number = counts[0]
    if number * 2 <= total:
        for member in pool.members:
            member.split.append(pool.trait.title.en)
        return _split(pool, counts)
    alike = f"{pool.trait.title.en} {_shown(most)}"
    for member, key in zip(pool.members, pool.keys, strict=True):
        if key == most:
            member.alike.append(alike)
        else:
            member.drifts.append(_drift(pool.trait, member, key, most, number, total))
    return None


def _drift(trait: Trait, member: _Member, key: str, most: str, number: int, total: int) -> Verdict:
    on = f"{member.finding.subject} has " if member.finding.subject else ""
    remedies = remedies_for(trait.cause, member.finding.verdict.measured)
    return Verdict(
        status=Status.FAIL if trait.fails else Status.WARN,
        reason=f"{on}{trait.title.en} {_shown(key)}, {number} of {total} peers have {_shown(most)}",
        cause=trait.cause,
        remedies=fitting(remedies, member.value(DRIVER)),
        rule=trait.name,
        measured={
            **member.finding.verdict.measured,
            "majority": json.loads(most),
            "peers_alike": number,
            "peers_compared": total,
        },
    )


def _split(pool: _Pool, counts: Sequence[tuple[str, int]]) -> Verdict:
    on = pool.members[0].finding.subject
    only = {key: member.finding.host for member, key in zip(pool.members, pool.keys, strict=True)}
    parts = ", ".join(
        f"{only[key]} has {_shown(key)}" if number == 1 else f"{number} have {_shown(key)}"
        for key, number in counts[:4]
    )
    more = f", and {len(counts) - 4} more values" if len(counts) > 4 else ""
    return Verdict(
        status=Status.FAIL if pool.trait.fails else Status.WARN,
        reason=f"{f'{on}: ' if on else ''}{pool.trait.title.en} has no majority among "
        f"{len(pool.members)} peers: {parts}{more}; {VARIABLE} says who should be alike",
        cause=pool.trait.cause,
        remedies=remedies_for(pool.trait.cause, {}),
        rule=pool.trait.name,
        measured={_shown(key): number for key, number in counts[:20]},
        hosts=tuple(sorted((member.finding.host for member in pool.members), key=natural)),
    )


def _judged(result: Result, members: Sequence[_Member], whole: bool) -> Result:
    """The result with every waiting finding settled; what was not read or does not apply stays."""
    by_subject = {member.finding.subject: member for member in members}
    findings: list[Finding] = []
    for finding in result.findings:
        if GROUP not in finding.verdict.measured:
            findings.append(finding)
        elif (member := by_subject.pop(finding.subject, None)) is not None:
            findings += [replace(finding, verdict=each) for each in _verdicts(member, whole)]
    return replace(result, findings=tuple(findings))


def _verdicts(member: _Member, whole: bool) -> list[Verdict]:
    if member.drifts:
        return member.drifts
    traits = {
        key: value
        for key, value in member.finding.verdict.measured.items()
        if key not in ("majority", "peers_alike", "peers_compared")
    }
    unread = traits.get(UNREAD)
    if not whole:
        kind, reason = Kind.BLOCKED, "blocked: a shard does not see all peers; see commcheck merge"
    elif unread:
        why = "; ".join(f"{name}: {each}" for name, each in dict(unread).items())  # type: ignore[call-overload]  # JSON: a mapping of texts
        kind, reason = Kind.UNDECIDABLE, f"undecidable: not all was read to compare: {why}"
    elif member.split:
        what = ", ".join(member.split)
        kind, reason = Kind.UNDECIDABLE, f"undecidable: its peers have no majority in {what}"
    elif member.alike:
        return [
            Verdict(
                status=Status.PASS,
                reason=f"like its peers: {', '.join(member.alike)}",
                measured=traits,
            )
        ]
    elif member.said:
        what = ", ".join(member.said)
        kind, reason = Kind.BLOCKED, f"blocked: what is declared of {what} is not met"
    else:
        kind = Kind.NOT_APPLICABLE
        reason = (
            f"not applicable: fewer than {LEAST} peers of group {member.value(GROUP)} took part"
        )
    return [Verdict(status=Status.SKIP, kind=kind, reason=reason, measured=traits)]


def _owner_found(trait: Trait, finding: Finding, latest: Mapping[tuple[str, str], Result]) -> bool:
    """True where a check already says of the same subject what is wrong by what is declared.

    What is wrong with a host is said on it; what is wrong with any of its rails is said of it too.
    """
    return any(
        (each.verdict.status in (Status.FAIL, Status.WARN) or each.verdict.kind is Kind.WAIVED)
        and (not finding.subject or each.subject in ("", finding.subject))
        for owner in trait.owners
        if (result := latest.get((finding.host, owner))) is not None
        for each in result.findings
    )


_ENCODE: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=False).encode


def _key(value: object) -> str:
    """Equal texts for equal values, whether they come from a reader or from stored results."""
    if isinstance(value, set | frozenset):
        value = sorted(value)
    return _ENCODE(value)


def _shown(key: str) -> str:
    value = json.loads(key)
    words = value if isinstance(value, list) else [value]
    text = ", ".join(map(str, words)) or "none"
    return text if len(text) <= 120 else f"{text[:117]}..."

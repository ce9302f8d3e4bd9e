"""What several hosts hold parts of, judged as one when all of them were looked at. Pure.

A check that declares ``together`` gives a part beside each host's verdict. Of a host that is shut
out below, the part counts too: what it shows of the others is as true. Its own case stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from commcheck.check import AnyCheck, Whole
from commcheck.consequences import consequence, proven_slug
from commcheck.model import Finding, Kind, Result, Status, Verdict
from commcheck.plan import Asked

_SHUT = frozenset({Kind.GATED, Kind.BLOCKED, Kind.NOT_PERMITTED, Kind.HOST})


def judged(
    checks: Iterable[AnyCheck],
    results: Sequence[Result],
    asked_of: Mapping[str, Sequence[Asked]],
) -> tuple[Result, ...]:
    """The results that take the place of those judged by a part alone.

    ``results``: all of a run; of a case judged twice the later counts. ``asked_of``: by host name.
    """
    latest = {(result.host, result.check): result for result in results}
    done: list[Result] = []
    for check in checks:
        if check.together is None:
            continue
        parts = {
            host: result.part
            for (host, check_id), result in latest.items()
            if check_id == check.id and result.part is not None
        }
        for whole in check.together.judge(parts) if parts else ():
            done += _placed(check, whole, latest, asked_of)
    return tuple(done)


def sharing(shares: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Hosts that share something, directly or over others, in their order; ``shares``: by host."""
    group: dict[str, list[str]] = {}
    for host, things in shares.items():
        mine = [host]
        others = {id(group[thing]): group[thing] for thing in things if thing in group}
        for other in others.values():
            mine = [*other, *mine]
        for thing in {*things, *(each for member in mine for each in shares[member])}:
            group[thing] = mine
    return list({id(hosts): hosts for hosts in group.values()}.values())


def _placed(
    check: AnyCheck,
    whole: Whole,
    latest: Mapping[tuple[str, str], Result],
    asked_of: Mapping[str, Sequence[Asked]],
) -> Iterable[Result]:
    members = set(whole.hosts)
    known = [result for result in latest.values() if result.host in members]
    for host, verdicts in whole.verdicts.items():
        result = latest[host, check.id]
        if result.kind in _SHUT:
            continue
        advisory = any(each.is_advisory for each in asked_of.get(host, ()) if each.check is check)
        findings = []
        for verdict in verdicts:
            told = _explained(check, verdict, host, known)
            if advisory and told.status is Status.FAIL:
                told = replace(told, status=Status.WARN)
            findings.append(
                Finding(
                    check=check.id,
                    host=host,
                    subject="",
                    verdict=told,
                    bounds=result.worst.bounds,
                    evidence=result.worst.evidence,
                    unproven_below=result.worst.unproven_below,
                )
            )
        if tuple(findings) != result.findings:
            yield replace(result, findings=tuple(findings))


def _explained(check: AnyCheck, verdict: Verdict, host: str, known: Sequence[Result]) -> Verdict:
    """A finding that follows from a cause found on a host that took part; else as it is."""
    if verdict.cause is None or verdict.status not in (Status.FAIL, Status.WARN):
        return verdict
    for edge in check.explained_by:
        if edge.join == "same-rail" or not edge.covers(verdict.cause.slug):
            continue
        near = (each for each in known if edge.join != "same-host" or each.host == host)
        for finding in (finding for result in near for finding in result.findings):
            if proven_slug(finding) == edge.cause:
                return consequence(verdict, finding)
    return verdict

"""What one cause found on a host brings with it there: folded under it, and not counted again.

Pure. Checks that look are folded host by host; what a load shows may follow from what was found on
any host that took part, unless the loss counters stood still meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from commcheck.check import AnyCheck, Explained
from commcheck.jobs.job import Search
from commcheck.model import Finding, Kind, Result, Status, Verdict, on_one_rail

_WRONG = (Status.FAIL, Status.WARN)


def folded(
    checks: Iterable[AnyCheck], findings: Mapping[str, Sequence[Finding]]
) -> dict[str, list[Finding]]:
    """By check id, the findings of one host of which some follow from a cause found there.

    Checks of which nothing follows are left out. Only a fail is a cause; a warning is none. A fail
    that is waived is still there.
    """
    edges = {check.id: check.explained_by for check in checks if check.explained_by}
    everything = [each for of_check in findings.values() for each in of_check]
    changed = {}
    for check in edges:
        mine = findings.get(check, ())
        told = [_told(each, edges, everything) for each in mine]
        if any(new is not old for new, old in zip(told, mine, strict=True)):
            changed[check] = told
    return changed


def consequence(verdict: Verdict, root: Finding, more: str = "") -> Verdict:
    """A verdict folded under the finding, with a cause, that explains it.

    Whoever puts up with a fault puts up with what it brings.
    """
    is_waived = root.verdict.kind is Kind.WAIVED
    return replace(
        verdict,
        status=Status.SKIP,
        kind=Kind.WAIVED if is_waived else Kind.BLOCKED,
        reason=f"consequence of {named(root)}{', waived' if is_waived else ''}: "
        f"{verdict.reason}{more}",
        follows="" if is_waived else proven_slug(root),
    )


def named(root: Finding) -> str:
    """``physical.pfc-enabled (pfc-off) on gpu-03 mlx5_0``."""
    where = f"{root.host} {root.subject}".strip()
    return f"{root.check} ({proven_slug(root)}) on {where}"


def proven_slug(finding: Finding) -> str:
    """The slug of what is proven wrong, waived or not; "" where nothing is, or only a warning."""
    verdict = finding.verdict
    return verdict.cause.slug if verdict.cause and is_proven(verdict) else ""


def is_proven(verdict: Verdict) -> bool:
    """True for a fail, be it waived."""
    return verdict.status is Status.FAIL or (verdict.kind is Kind.WAIVED and not verdict.advisory)


def _told(
    finding: Finding, edges: Mapping[str, tuple[Explained, ...]], everything: Sequence[Finding]
) -> Finding:
    """The finding, as a consequence of the root of what explains it, if anything does."""
    root = by = _cause(finding, edges, everything)
    while by is not None:  # no circle: discovery refuses one
        root, by = by, _cause(by, edges, everything)
    if root is None or root.verdict.cause is None:
        return finding
    return replace(finding, verdict=consequence(finding.verdict, root))


def _cause(
    finding: Finding, edges: Mapping[str, tuple[Explained, ...]], everything: Sequence[Finding]
) -> Finding | None:
    """What explains the finding directly: the first by the order of its check's edges."""
    mine = finding.verdict.cause
    if mine is None or finding.verdict.status not in _WRONG:
        return None
    for edge in filter(lambda each: each.covers(mine.slug), edges.get(finding.check, ())):
        for other in everything:
            if proven_slug(other) != edge.cause:
                continue
            if edge.join != "same-rail" or on_one_rail(other.subject, finding.subject):
                return other
    return None


# --- what loads show ----------------------------------------------------------------------------


def explained(
    check: AnyCheck,
    verdict: Verdict,
    hosts: Sequence[str],
    search: Search,
    known: Sequence[Result],
) -> Verdict:
    """A fail that follows from a cause found below, as a consequence of that; else as it is.

    A cause that works by losing packets explains nothing where the loss counters of the hosts
    were read before and after, and stood.
    """
    mine = verdict.cause.slug if verdict.cause else ""
    edges = {edge.cause: edge for edge in check.explained_by if edge.covers(mine)}
    for result in known:
        for finding in result.findings:
            edge = edges.get(proven_slug(finding))
            if edge is None or not _joins(edge, result.host, hosts, search):
                continue
            if edge.by_loss and _stood(search, result.host):
                text = (
                    f"{verdict.reason}; not a consequence of {named(finding)}: the loss counters "
                    f"of {result.host} stood still meanwhile"
                )
                return replace(verdict, reason=text)
            return consequence(verdict, finding, _told_growth(search, result.host))
    return verdict


def _joins(edge: Explained, host: str, hosts: Sequence[str], search: Search) -> bool:
    return host in (search.hosts if edge.join == "any-in-job" else hosts)


def _stood(search: Search, host: str) -> bool:
    return host in search.growth and not search.growth[host].added


def _told_growth(search: Search, host: str) -> str:
    """What the loss counters of all its rails grew by, the two that grew most."""
    if host not in search.growth:
        return ""
    sums: Counter[str] = Counter()
    for name, added in search.growth[host].added.items():
        sums[name.rpartition("/")[2]] += added
    told = ", ".join(f"{name} +{added:,}" for name, added in sums.most_common(2))
    return f"; meanwhile {told} on {host}" if told else ""

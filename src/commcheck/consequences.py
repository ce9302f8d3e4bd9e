"""What one cause found on a host brings with it there: folded under it, and not counted again.

Pure, for checks that look. What loads show is folded by ``loads``, which also knows who took part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from commcheck.check import AnyCheck, Explained
from commcheck.model import Finding, Kind, Status, Verdict

_WRONG = (Status.FAIL, Status.WARN)


def folded(
    checks: Iterable[AnyCheck], findings: Mapping[str, Sequence[Finding]]
) -> dict[str, list[Finding]]:
    """By check id, the findings of one host of which some follow from a cause found there.

    Checks of which nothing follows are left out. Only a fail is a cause; a warning is none.
    """
    edges = {check.id: check.explained_by for check in checks if check.explained_by}
    everything = [each for of_check in findings.values() for each in of_check]
    changed = {}
    for check in edges:
        told = [_told(each, edges, everything) for each in findings.get(check, ())]
        if any(each.verdict.follows for each in told):
            changed[check] = told
    return changed


def consequence(verdict: Verdict, root: Finding, more: str = "") -> Verdict:
    """A verdict folded under the finding, with a cause, that explains it."""
    return replace(
        verdict,
        status=Status.SKIP,
        kind=Kind.BLOCKED,
        reason=f"consequence of {named(root)}: {verdict.reason}{more}",
        follows=slug_of(root),
    )


def named(root: Finding) -> str:
    """``physical.pfc-enabled (pfc-off) on gpu-03 mlx5_0``."""
    where = f"{root.host} {root.subject}".strip()
    return f"{root.check} ({slug_of(root)}) on {where}"


def slug_of(finding: Finding) -> str:
    """The slug of what is proven wrong; "" where nothing is. A warning explains nothing."""
    cause = finding.verdict.cause
    return cause.slug if cause and finding.verdict.status is Status.FAIL else ""


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
            if slug_of(other) != edge.cause:
                continue
            if edge.join != "same-rail" or other.subject == finding.subject:
                return other
    return None

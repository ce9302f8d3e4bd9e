"""What the results of many checks and hosts come to: the exit code, and a layer's word."""

from __future__ import annotations

from collections.abc import Iterable

from commcheck.model import Kind, Result, Status, row


def exit_code(results: Iterable[Result], *, strict: bool = False) -> int:
    """0 all judged and right, 1 something fails, 3 nothing fails but something is unknown.

    What the input cannot tell counts where no host was told in full: a pass or a warning beside it,
    of another rail or of another rule on the same log, does not decide it.
    """
    codes: set[int] = set()
    undecided: set[str] = set()
    decided: set[str] = set()
    for result in results:
        rows = [row(finding.verdict) for finding in result.findings]
        codes.update(each.exit_code for each in rows)
        if any(each.exit_if_everywhere == 3 for each in rows):
            undecided.add(result.check)
        elif any(each.junit in ("pass", "warn", "failure") for each in rows):
            decided.add(result.check)
        if strict and result.status is Status.WARN:
            codes.add(1)
    if undecided - decided:
        codes.add(3)
    return 1 if 1 in codes else 3 if 3 in codes else 0


def layer_word(results: Iterable[Result], *, strict: bool = False) -> str:
    """What a layer says of itself: ``breaks here``, ``partly judged``, ``pass``, ``not climbed``.

    "pass" stands only where every verdict of every host was judged and right. ``strict``:
    warnings count as failures.
    """
    verdicts = [finding.verdict for result in results for finding in result.findings]
    rows = [row(verdict) for verdict in verdicts]
    if not rows:
        return "not climbed"
    wrong = {"failure", "warn"} if strict else {"failure"}
    if any(each.junit in wrong for each in rows):
        return "breaks here"
    kinds = [verdict.kind for verdict in verdicts]
    if any(
        kind in (Kind.HOST, Kind.CHECK, Kind.UNDECIDABLE, Kind.BUSY, Kind.BLOCKED) for kind in kinds
    ):
        return "partly judged"
    right = any(verdict.status in (Status.PASS, Status.WARN) for verdict in verdicts)
    if not right and Kind.WAIVED not in kinds:  # nothing was proven: no kind of pass
        if Kind.NOT_PERMITTED in kinds:
            return "not measured"
        return "not climbed" if Kind.GATED in kinds else "not applicable"
    if Kind.GATED in kinds:
        return "pass so far"
    waived = sum(kind is Kind.WAIVED for kind in kinds)
    words = ["pass"]
    if any(verdict.status is Status.WARN for verdict in verdicts):
        words.append("with warnings")
    if waived:
        words.append(f"{waived} waived")
    if Kind.NOT_PERMITTED in kinds:
        words.append("not all measured")
    return ", ".join(words)

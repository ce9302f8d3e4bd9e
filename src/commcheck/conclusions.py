"""What the results of many checks and hosts come to: the exit code, and a layer's word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from commcheck.model import TABLE, Kind, Result, Status


def exit_code(results: Iterable[Result], *, strict: bool = False) -> int:
    """0 all judged and right, 1 something fails, 3 nothing fails but something is unknown.

    What the input cannot tell counts where no host was told in full: a pass or a warning beside it,
    of another rail or of another rule on the same log, does not decide it.
    """
    codes: set[int] = set()
    undecided: set[str] = set()
    decided: set[str] = set()
    # Many results say the same: each way of saying it is looked at once.
    told = {
        (
            result.check,
            frozenset((each.verdict.status, each.verdict.kind) for each in result.findings),
        )
        for result in results
    }
    for check, pairs in told:
        rows = [TABLE[pair] for pair in pairs]
        codes.update(each.exit_code for each in rows)
        if any(each.exit_if_everywhere == 3 for each in rows):
            undecided.add(check)
        elif any(TABLE[pair].junit in _TOLD or pair[1] is Kind.WAIVED for pair in pairs):
            decided.add(check)
        if strict and min(rows, key=lambda each: each.rank).junit == "warn":
            codes.add(1)
    if undecided - decided:
        codes.add(3)
    return 1 if 1 in codes else 3 if 3 in codes else 0


_TOLD: Final = ("pass", "warn", "failure")


def layer_word(results: Iterable[Result], *, strict: bool = False) -> str:
    """What a layer says of itself: ``breaks here``, ``partly judged``, ``pass``, ``not climbed``.

    "partly judged" wants something that was judged; where nothing was it is "not judged".

    "pass" stands only where every verdict of every host was judged and right. ``strict``:
    warnings count as failures.
    """
    told = Counter(
        (finding.verdict.status, finding.verdict.kind)
        for result in results
        for finding in result.findings
    )
    if not told:
        return "not climbed"
    wrong = {"failure", "warn"} if strict else {"failure"}
    if any(TABLE[pair].junit in wrong for pair in told):
        return "breaks here"
    statuses, kinds = {status for status, _ in told}, {kind for _, kind in told}
    right = Status.PASS in statuses or Status.WARN in statuses
    if any(
        kind in (Kind.HOST, Kind.CHECK, Kind.UNDECIDABLE, Kind.BUSY, Kind.BLOCKED) for kind in kinds
    ):
        return "partly judged" if right or Kind.WAIVED in kinds else "not judged"
    if not right and Kind.WAIVED not in kinds:  # nothing was proven: no kind of pass
        if Kind.NOT_PERMITTED in kinds:
            return "not measured"
        return "not climbed" if Kind.GATED in kinds else "not applicable"
    if Kind.GATED in kinds:
        return "pass so far"
    waived = sum(count for (_, kind), count in told.items() if kind is Kind.WAIVED)
    words = ["pass"]
    if Status.WARN in statuses:
        words.append("with warnings")
    if waived:
        words.append(f"{waived} waived")
    if Kind.NOT_PERMITTED in kinds:
        words.append("not all measured")
    return ", ".join(words)

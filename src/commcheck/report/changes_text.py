"""What is different from a baseline, in lines and words that several reports share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from commcheck.lazy import dataclass
from commcheck.model import Words
from commcheck.report.changes import KINDS, TROUBLE, Change, Changes, Kind
from commcheck.report.cleaning import for_console
from commcheck.report.counts import many
from commcheck.report.interface import counted, known, t
from commcheck.report.lines import beside, wrapped
from commcheck.report.ranges import fold_hosts
from commcheck.report.words import Mark, padded, shown

if TYPE_CHECKING:
    from commcheck.report.text import Look

MAX_ROWS: Final = 30
"""Of each kind of line; the rest is counted, and is in ``results.json``."""

TITLES: Final[Mapping[Kind, str]] = {
    "newly-failing": "newly failing",
    "newly-unknown": "newly unknown",
    "newly-warned": "new warning",
    "still-failing": "still failing",
    "still-unknown": "still unknown",
    "no-longer-judged": "not judged now",
    "now-waived": "now waived",
    "fixed": "fixed",
}

MARKS: Final[Mapping[Kind, tuple[str, str]]] = {
    # Glyph and tone, as of a verdict.
    "newly-failing": ("✕", "fail"),
    "newly-unknown": ("?", "error"),
    "newly-warned": ("!", "warn"),
    "fixed": ("✓", "pass"),
    "no-longer-judged": ("·", "gated"),
    "now-waived": ("\N{EN DASH}", "skip"),
    "still-failing": ("✕", "fail"),
    "still-unknown": ("?", "error"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A change as a report shows it."""

    mark: Mark
    hosts: tuple[str, ...]
    check: str
    reason: str


@dataclass(frozen=True, slots=True)
class Section:
    """All that a report says of a baseline. ``moved``: check, and what moved there in words."""

    baseline: str
    says: Words
    notes: tuple[str, ...]
    rows: tuple[Row, ...]
    moved: tuple[tuple[str, str], ...]
    more: int  # rows and moved values that are not shown

    @property
    def summary(self) -> str:
        """In English, as a terminal and Markdown have it."""
        return self.says.en


def section(changes: Changes, most: int = MAX_ROWS) -> Section:
    """The worst of each first, at most ``most`` of each."""
    rows = tuple(_row(change) for change in changes.changes)
    values = tuple(moved(changes))
    return Section(
        changes.baseline,
        Words(summary(changes), _summary_zh(changes)),
        changes.notes,
        rows[:most],
        values[:most],
        len(rows[most:]) + len(values[most:]),
    )


def summary(changes: Changes) -> str:
    """``1 newly failing, 2 fixed; 380 verdicts compared, of 400 judged now and 390 then``."""
    parts = [f"{changes.cases(kind):,} {TITLES[kind]}" for kind in KINDS if changes.cases(kind)]
    if changes.moved:
        parts.append(f"{many(len(changes.moved), 'value')} moved")
    words = ", ".join(parts) or "nothing is different"
    return (
        f"{words}; {changes.compared:,} verdicts compared, of {changes.judged_now:,} judged now "
        f"and {changes.judged_before:,} then"
    )


def _summary_zh(changes: Changes) -> str:
    parts = [f"{known(TITLES[kind]).zh} {changes.cases(kind):,}"
             for kind in KINDS if changes.cases(kind)]  # fmt: skip
    if changes.moved:
        parts.append(f"数值变动 {len(changes.moved):,}")
    return (
        f"{'，'.join(parts) or '没有变化'}；比较了 {changes.compared:,} 项结果"
        f"（本次 {changes.judged_now:,} 项，基线 {changes.judged_before:,} 项）"
    )


def _row(change: Change) -> Row:
    more = f" and {many(len(change.checks) - 1, 'more check')}" if len(change.checks) > 1 else ""
    glyph, tone = MARKS[change.kind]
    return Row(
        mark=Mark(glyph, TITLES[change.kind], tone),
        hosts=change.hosts,
        check=change.checks[0] + more,
        reason=_reason(change),
    )


def _reason(change: Change) -> str:
    if change.kind == "fixed":
        return f"was: {change.before}"
    if change.kind == "newly-failing" and change.was in TROUBLE:
        return f"{change.after} (was {change.was})"
    if change.kind == "still-failing" and change.since:
        return f"since {change.since}: {change.after}"
    return change.after or "it is not in this run"


def moved(changes: Changes) -> Iterator[tuple[str, str]]:
    """Check, and what moved there in words; the limits first, since verdicts rest on them."""
    for limit in changes.limits:
        unit = f" {limit.unit}" if limit.unit else ""
        yield (
            limit.check,
            f"limit {limit.name} was {shown(limit.before)}, is {shown(limit.after)}{unit} "
            f"on {many(len(limit.hosts), 'host')}",
        )
    for value in changes.moved:
        yield (
            value.check,
            f"{value.name} was {shown(value.before)}, is {shown(value.after)} on {value.example}"
            + (f" and moved on {len(value.subjects) - 1:,} more" if value.subjects[1:] else ""),
        )


def lines(changes: Changes, look: Look) -> Iterator[str]:
    """For a terminal. What a verdict said, then and now, is English in every language."""
    told = section(changes)
    since = Words(
        f"Since {told.baseline}: {told.says.en}", f"与 {told.baseline} 相比：{told.says.zh}"
    )
    yield for_console(look.say(since), 400)
    for note in told.notes:
        yield from wrapped(
            f"  {look.say(t('note: '))}{for_console(note, 2000)}", look.width, "    "
        )
    for row in told.rows:
        who = fold_hosts(row.hosts)
        if len(who) > 25 and len(row.hosts) > 1:
            who = f"{look.say(counted(len(row.hosts), 'host'))} ({row.hosts[0]}, ...)"
        what = padded(look.say(known(row.mark.word)), 14)
        left = f"  {what} {padded(for_console(who), 25)} {for_console(row.check):29} "
        for line in beside(left, for_console(row.reason, 2000), look.width):
            yield look.paint(line, row.mark.tone)
    for check, words in told.moved:
        left = f"  {padded(look.say(t('moved')), 14)} "
        yield from beside(left, for_console(f"{check}: {words}", 2000), look.width)
    if told.more:
        more = look.say(counted(told.more, "more change"))
        yield look.say(
            Words(
                f"  ... and {told.more:,} more, see results.json",
                f"  ……另有 {more}，见 results.json",
            )
        )

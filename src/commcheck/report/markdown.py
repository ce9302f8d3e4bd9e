"""The summary as Markdown, for a CI step's page, a merge request or a ticket.

What a remote host said is escaped: it makes no link, no image, no mention and no HTML, wherever
the text is pasted. Small by construction, since GitHub refuses a step's summary over 1 MiB whole
and comments over 64 KB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from commcheck.diagnose import Diagnosis, Rung, diagnose
from commcheck.report import changes_text
from commcheck.report.cards import Card, Gap, Step, cards, gaps
from commcheck.report.cleaning import clean, columns, cut, one_line
from commcheck.report.evidence import Shelf
from commcheck.report.junit import RUNBOOK, anchor
from commcheck.report.record import Record
from commcheck.report.text import duration
from commcheck.report.words import EXIT_CODES, VERDICTS, Mark, folded, many, rung_mark, utc

MAX_CAUSES: Final = 20
MAX_SCREEN: Final = 60
"""Lines of an analysis' screen."""

CAUSES_BYTES: Final = 36_000
GAPS_BYTES: Final = 12_000
CHANGES_BYTES: Final = 8_000
MAX_COMMANDS: Final = 8
"""Command lines of one remedy."""

_TEXT: Final = 400
_HOSTS: Final = 300
_COMMANDS: Final = 800

_COLUMNS: Final = ("pass", "warn", "fail", "error", "gated", "skip")
_HEADS: Final = ("pass", "warn", "FAIL", "error", "gated", "n/a")


def render(record: Record, *, runbook_url: str = RUNBOOK) -> str:
    """The summary of a run, under 64 KB. The same record gives the same text."""
    diagnosis = diagnose(record)
    shelf = Shelf(limit=1)  # answers of commands are in the HTML report
    causes = cards(record, diagnosis, shelf)
    unknown = gaps(record, shelf)
    blocks = [
        *_head(record, diagnosis),
        *_screen(record),
        *_where(diagnosis),
        _ladder(diagnosis.ladder),
        *_changed(record),
        *_within(
            "### Causes",
            [_cause(card, diagnosis, runbook_url) for card in causes[:MAX_CAUSES]],
            CAUSES_BYTES,
            len(causes),
        ),
        *_within(
            "### Not judged",
            [_gap(gap, runbook_url) for gap in unknown[:MAX_CAUSES]],
            GAPS_BYTES,
            len(unknown),
        ),
        _foot(record),
    ]
    return "\n\n".join(blocks) + "\n"


def _screen(record: Record) -> Iterator[str]:
    """What an analysis of files found, laid out in columns: indented code, so nothing is markup."""
    if record.screen:
        yield "\n".join(f"    {columns(line)}" for line in record.screen[:MAX_SCREEN])


# --- blocks -------------------------------------------------------------------------------------


def _head(record: Record, diagnosis: Diagnosis) -> Iterator[str]:
    yield f"## {_mark(VERDICTS[diagnosis.status])}: {escape(diagnosis.headline)}"
    facts = [
        f"exit code {record.exit_code}: {EXIT_CODES[record.exit_code]}",
        f"playbook {escape(record.info.playbook)}",
        utc(record.info.started),
    ]
    if record.ended:
        facts.append(duration(record.seconds))
    yield " · ".join(facts)
    if diagnosis.more:
        yield "\n".join(f"- {escape(sentence)}" for sentence in diagnosis.more)


def _where(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.cause:
        group = diagnosis.cause
        shared = "; ".join(escape(share.words.en) for share in group.shares)
        yield f"**Where:** {_hosts(group.hosts)}  \n**Why:** {escape(group.reason)}" + (
            f"  \n**Shared by:** {shared}" if shared else ""
        )


def _ladder(ladder: tuple[Rung, ...]) -> str:
    lines = [
        f"| Layer | State | {' | '.join(_HEADS)} |",
        f"| --- | --- |{' ---: |' * len(_HEADS)}",
    ]
    for rung in ladder:
        counts = " | ".join(f"{rung.hosts.get(word, 0):,}" for word in _COLUMNS)
        lines.append(f"| {rung.layer.height} {rung.layer} | {_mark(rung_mark(rung))} | {counts} |")
    return "\n".join(lines)


def _changed(record: Record) -> Iterator[str]:
    """What is different from the baseline, where there is one."""
    changes = record.changes
    if changes is None:
        return
    told = changes_text.section(changes)
    lines = [f"- {escape(note)}" for note in told.notes]
    lines += [
        f"- **{_mark(row.mark)}**: {_code(row.check)} on {_hosts(row.hosts)}: {escape(row.reason)}"
        for row in told.rows
    ]
    lines += [f"- **moved**: {_code(check)}: {escape(words)}" for check, words in told.moved]
    total = 1 + len(lines) + told.more
    head = f"Since run {_code(told.baseline)}: {escape(told.summary)}"
    yield from _within("### Changes", [head, *lines], CHANGES_BYTES, total)


def _within(title: str, parts: list[str], limit: int, total: int) -> Iterator[str]:
    """A title and as many parts as fit into ``limit`` bytes; the others are counted."""
    if not parts:
        return
    yield title
    shown = 0
    for part in parts:
        limit -= len(part.encode())
        if limit < 0:
            break
        yield part
        shown += 1
    if shown < total:
        yield f"And {total - shown:,} more, see report.html."


def _cause(card: Card, diagnosis: Diagnosis, runbook_url: str) -> str:
    group = card.group
    lines = [_hosts(group.hosts)]
    if card.above:
        lines.append(f"May be a consequence: the {diagnosis.layer} layer breaks below it.")
    if group.meaning:
        lines.append(escape(group.meaning.en))
    lines += [f"follows from it: {_code(each.check)} on {_hosts(each.hosts)}"
              for each in group.follows]  # fmt: skip
    lines += [f"against it: {escape(words.en)}" for words in group.speaks_against]
    lines.append(f"{escape(card.example)}: {escape(group.reason)}")
    lines += [
        f"wanted {_code(row.text)}, set in {escape(row.origin)}"
        for row in card.limits.rows[:MAX_COMMANDS]
    ]
    head = f"#### {_mark(card.mark)} {escape(group.title.en)}"
    return "\n\n".join(
        [
            f"{head}, {many(len(group.hosts), 'host')} ({group.layer})",
            "\n".join(f"- {line}" for line in lines),
            *(_step(place, step) for place, step in enumerate(card.steps, start=1)),
            _reading(group.check, runbook_url),
        ]
    )


def _step(place: int, step: Step) -> str:
    first = f" First: {escape(step.precondition.en)}" if step.precondition.en else ""
    who = "" if step.who == "operator" else f" ({escape(step.who)})"
    blocks = [f"**Remedy {place}**{who}: {escape(step.effect.en)}{first}"]
    for row in step.commands.rows[:1]:
        lines = row.text.split("\n")
        blocks.append(fence(cut("\n".join(lines[:MAX_COMMANDS]), _COMMANDS)))
        whole = len(step.commands.rows) == 1 and len(lines) <= MAX_COMMANDS
        more = "" if whole else "; more for other rails or hosts in report.html"
        blocks.append(f"on {_hosts(row.hosts)}{more}")
    return "\n\n".join(blocks)


def _gap(gap: Gap, runbook_url: str) -> str:
    more = f" and {many(len(gap.checks) - 1, 'more check')}" if len(gap.checks) > 1 else ""
    word = f" {escape(gap.word)}" if gap.word else ""
    lines = [
        f"- **{_mark(gap.mark)}{word}**: {_code(gap.checks[0])}{more} on {_hosts(gap.hosts)}",
        *(f"  - {escape(row.text)}" for row in gap.reasons.rows[:3]),
    ]
    if left := len(gap.reasons.rows[3:]) + gap.reasons.more:
        lines.append(f"  - and {many(left, 'more reason')}, see report.html")
    if len(gap.checks) == 1:
        lines.append(f"  - {_reading(gap.checks[0], runbook_url)}")
    return "\n".join(lines)


def _reading(check: str, runbook_url: str) -> str:
    address = f"{runbook_url}#{anchor(check)}"
    return f"Read more: {_code(address)}, {_code('commcheck explain ' + check)}"


def _foot(record: Record) -> str:
    info = record.info
    inventory = ", ".join(info.inventory)
    limit = f", limit {_code(info.limit)}" if info.limit else ""
    return (
        f"Run {_code(info.run_id)}, {record.state}: inventory {escape(inventory)}{limit}, "
        f"{many(len(record.plan.hosts), 'host')}, commcheck {escape(info.version)}. "
        "Evidence: report.html in the run's folder."
    )


# --- escaping -----------------------------------------------------------------------------------

# A backslash before ASCII punctuation is plain text in CommonMark; inside a word "_" is anyway.
_SPECIAL: Final = re.compile(r"[\\`*\[\]<>#|~&$]|(?<!\w)_|_(?!\w)")
_AT_START: Final = re.compile(r"^(\d{0,9})([-+=.)])")
# Forges look for these in the text after Markdown has dropped the backslash: a mention, a
# reference to an issue or merge request, an address. A zero-width space ends the word.
_REFERENCE: Final = re.compile(r"@|#(?=\w)|!(?=\d)|:(?=//)|(?<=www)\.", re.IGNORECASE)


def escape(text: str, limit: int = _TEXT) -> str:
    """A text of any origin as one line of Markdown that renders as itself and does nothing."""
    line = _SPECIAL.sub(r"\\\g<0>", one_line(text, limit))
    line = _AT_START.sub(r"\1\\\2", line)
    return _REFERENCE.sub("\\g<0>\u200b", line)


def _code(text: str) -> str:
    """One line as code, delimited by more backticks than it holds in a row."""
    line = one_line(text, _TEXT)
    ticks = "`" * (_longest(line) + 1)
    return f"{ticks} {line} {ticks}" if "`" in line else f"`{line}`" if line else ""


def fence(text: str) -> str:
    """Text as a code block, delimited by more backticks than any line of it holds."""
    body = clean(text)
    ticks = "`" * max(3, _longest(body) + 1)
    return f"{ticks}text\n{body}\n{ticks}"


def _longest(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)


def _hosts(hosts: tuple[str, ...]) -> str:
    return f"{many(len(hosts), 'host')} {_code(folded(hosts, _HOSTS))}"


def _mark(mark: Mark) -> str:
    return str(mark)

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
from commcheck.lazy import dataclass, regex
from commcheck.model import Words
from commcheck.report import changes_text
from commcheck.report.cards import Card, Gap, Step, cards, gaps
from commcheck.report.cleaning import clean, columns, cut, one_line
from commcheck.report.evidence import Shelf
from commcheck.report.interface import counted, known, t
from commcheck.report.junit import anchor
from commcheck.report.record import JOB, Record
from commcheck.report.text import duration
from commcheck.report.words import (
    EXIT_CODES,
    RUNBOOK,
    VERDICTS,
    Lang,
    folded,
    how_many,
    overrides,
    rung_mark,
    say,
    utc,
)


@dataclass(frozen=True, slots=True)
class Tell:
    """Words in the language of the summary, and how it calls hosts."""

    record: Record
    lang: Lang

    def __call__(self, words: Words) -> str:
        """The words."""
        return say(words, self.lang)

    def hosts(self, hosts: tuple[str, ...]) -> str:
        """``2 hosts `gpu-[01-02]` ``; of a job as a whole that it is."""
        many = self(how_many(self.record, hosts))
        return many if JOB in hosts else f"{many} {_code(folded(hosts, _HOSTS))}"


"""From words in both languages to those of the text's own."""

MAX_CAUSES: Final = 20
MAX_SCREEN: Final = 60
"""Lines of an analysis' screen."""

CAUSES_BYTES: Final = 36_000
GAPS_BYTES: Final = 12_000
CHANGES_BYTES: Final = 8_000
MAX_OVERRIDES: Final = 20
"""Site checks in a bundled one's place that are named."""

MAX_COMMANDS: Final = 8
"""Command lines of one remedy."""

_TEXT: Final = 400
_HOSTS: Final = 300
_COMMANDS: Final = 800

_COLUMNS: Final = ("fail", "error", "warn", "pass", "gated", "skip")
_HEADS: Final = ("FAIL", "error", "warn", "pass", "gated", "n/a")
"""What is wrong stands first: on a phone the rest may lie outside."""


def render(record: Record, *, runbook_url: str = RUNBOOK, lang: Lang = "en") -> str:
    """The summary of a run, under 64 KB. The same record gives the same text.

    What a host said and what was measured is English in every language.
    """
    tell = Tell(record, lang)
    diagnosis = diagnose(record)
    shelf = Shelf(limit=1)  # answers of commands are in the HTML report
    causes = cards(record, diagnosis, shelf)
    unknown = gaps(record, shelf)
    blocks = [
        *_head(record, diagnosis, tell),
        *_screen(record),
        *_where(diagnosis, tell),
        # Of files one layer is asked for, and no host is counted.
        *([_ladder(diagnosis.ladder, tell)] if record.info.noun == "host" else []),
        *_changed(record, tell),
        *_within(
            f"### {tell(t('Causes'))}",
            [_cause(card, runbook_url, tell) for card in causes[:MAX_CAUSES]],
            CAUSES_BYTES,
            len(causes),
            tell,
        ),
        *_within(
            f"### {tell(t('Not judged'))}",
            [_gap(gap, runbook_url, tell) for gap in unknown[:MAX_CAUSES]],
            GAPS_BYTES,
            len(unknown),
            tell,
        ),
        _foot(record, tell),
    ]
    return "\n\n".join(blocks) + "\n"


def _screen(record: Record) -> Iterator[str]:
    """What an analysis of files found, laid out in columns: indented code, so nothing is markup."""
    if record.screen:
        yield "\n".join(f"    {columns(line)}" for line in record.screen[:MAX_SCREEN])


# --- blocks -------------------------------------------------------------------------------------


def _head(record: Record, diagnosis: Diagnosis, tell: Tell) -> Iterator[str]:
    mark = tell(VERDICTS[diagnosis.status].says)
    yield f"## {mark}{tell(t(': '))}{escape(tell(diagnosis.says))}"
    ends = tell(known(EXIT_CODES[record.exit_code]))
    facts = [
        f"{tell(t('exit code'))} {record.exit_code}{tell(t(': '))}{ends}",
        f"{tell(t('playbook'))} {escape(record.info.playbook)}",
        utc(record.info.started),
    ]
    if record.ended:
        facts.append(duration(record.seconds))
    yield " · ".join(facts)
    sites = list(overrides(record.plan.checks).values())
    more = [*sites[:MAX_OVERRIDES], *diagnosis.says_more]
    if more:
        yield "\n".join(f"- {escape(tell(sentence))}" for sentence in more)


def _where(diagnosis: Diagnosis, tell: Tell) -> Iterator[str]:
    if diagnosis.cause:
        group = diagnosis.cause
        shared = "; ".join(escape(tell(share.words)) for share in group.shares)
        yield "  \n".join(
            f"**{tell(t(label))}{tell(t(': ')).rstrip()}** {text}"
            for label, text in (
                ("Where", tell.hosts(group.hosts)),
                ("Why", escape(group.reason)),
                ("Shared by", shared),
            )
            if text
        )


def _ladder(ladder: tuple[Rung, ...], tell: Tell) -> str:
    heads = " | ".join(tell(t(head)) for head in ("Layer", "State", *_HEADS))
    lines = [f"| {heads} |", f"| --- | --- |{' ---: |' * len(_HEADS)}"]
    for rung in ladder:
        counts = " | ".join(f"{rung.hosts.get(word, 0):,}" for word in _COLUMNS)
        layer = f"{rung.layer.height} {tell(known(rung.layer.value))}"
        lines.append(f"| {layer} | {tell(rung_mark(rung).says)} | {counts} |")
    return "\n".join(lines)


def _changed(record: Record, tell: Tell) -> Iterator[str]:
    """What is different from the baseline, where there is one."""
    changes = record.changes
    if changes is None:
        return
    told = changes_text.section(changes)
    colon = tell(t(": "))
    lines = [f"- {escape(note)}" for note in told.notes]
    lines += [
        f"- **{tell(row.mark.says)}**{colon}{_code(row.check)} {tell(t('on'))} "
        f"{tell.hosts(row.hosts)}{colon}{escape(row.reason)}"
        for row in told.rows
    ]
    lines += [
        f"- **{tell(t('moved'))}**{colon}{_code(check)}{colon}{escape(words)}"
        for check, words in told.moved
    ]
    total = 1 + len(lines) + told.more
    head = f"{tell(t('Since run'))} {_code(told.baseline)}{colon}{escape(tell(told.says))}"
    title = f"### {tell(t('Changes'))}"
    yield from _within(title, [head, *lines], CHANGES_BYTES, total, tell)


def _within(title: str, parts: list[str], limit: int, total: int, tell: Tell) -> Iterator[str]:
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
    if left := total - shown:
        yield tell(
            Words(f"And {left:,} more, see report.html.", f"另有 {left:,} 项，见 report.html。")
        )


def _cause(card: Card, runbook_url: str, tell: Tell) -> str:
    group = card.group
    colon = tell(t(": "))
    lines = [tell.hosts(group.hosts)]
    if card.below:
        below = card.below.value
        above = Words(
            f"May be a consequence: the {below} layer breaks below it.",
            f"可能是连带结果：更低的{known(below).zh}有故障。",
        )
        lines.append(tell(above))
    if group.meaning:
        lines.append(escape(tell(group.meaning)))
    lines += [
        f"{tell(t('follows from it'))}{colon}{_code(each.check)} {tell(t('on'))} "
        f"{tell.hosts(each.hosts)}"
        for each in group.follows
    ]
    lines += [
        f"{tell(t('against it'))}{colon}{escape(tell(words))}" for words in group.speaks_against
    ]
    where = "" if card.example == JOB else f"{escape(card.example)}{colon}"
    lines.append(f"{where}{escape(group.reason)}")
    lines += [
        tell(
            Words(
                f"wanted {_code(row.text)}, set in {escape(row.origin)}",
                f"期望 {_code(row.text)}，设定于 {escape(row.origin)}",
            )
        )
        for row in card.limits.rows[:MAX_COMMANDS]
    ]
    head = f"#### {tell(card.mark.says)} {escape(tell(group.title))}"
    layer = tell(known(group.layer.value))
    return "\n\n".join(
        [
            f"{head}{tell(t(', '))}{tell(how_many(tell.record, group.hosts))} ({layer})",
            "\n".join(f"- {line}" for line in lines),
            *(_step(place, step, tell) for place, step in enumerate(card.steps, start=1)),
            _reading(group.check, runbook_url, tell),
        ]
    )


def _step(place: int, step: Step, tell: Tell) -> str:
    before = escape(tell(step.precondition))
    first = f" {tell(t('First:'))} {before}" if before else ""
    by = Words(step.who, known(f"the {step.who}").zh)
    who = "" if step.who == "operator" else f" ({escape(tell(by))})"
    label = tell(Words(f"Remedy {place}", f"处置 {place}"))
    effect = escape(tell(step.effect))
    blocks = [f"**{label}**{who}{tell(t(': '))}{effect}{first}"]
    for row in step.commands.rows[:1]:
        lines = row.text.split("\n")
        blocks.append(fence(cut("\n".join(lines[:MAX_COMMANDS]), _COMMANDS)))
        whole = len(step.commands.rows) == 1 and len(lines) <= MAX_COMMANDS
        more = Words(
            "; more for other rails or hosts in report.html",
            "；其他轨或主机的命令见 report.html",
        )
        if JOB not in row.hosts:
            blocks.append(f"{tell(t('on'))} {tell.hosts(row.hosts)}{'' if whole else tell(more)}")
    return "\n\n".join(blocks)


def _gap(gap: Gap, runbook_url: str, tell: Tell) -> str:
    others = len(gap.checks) - 1
    more = tell(counted(others, "more check"))
    also = f" {tell(t('and'))} {more}" if others else ""
    word = f" {escape(gap.word)}" if gap.word else ""
    lines = [
        f"- **{tell(gap.mark.says)}{word}**{tell(t(': '))}{_code(gap.checks[0])}{also} "
        f"{tell(t('on'))} {tell.hosts(gap.hosts)}",
        *(f"  - {escape(row.text)}" for row in gap.reasons.rows[:3]),
    ]
    if left := len(gap.reasons.rows[3:]) + gap.reasons.more:
        rest = tell(counted(left, "more reason"))
        lines.append(
            tell(Words(f"  - and {rest}, see report.html", f"  - 另有 {rest}，见 report.html"))
        )
    if not others:
        lines.append(f"  - {_reading(gap.checks[0], runbook_url, tell)}")
    return "\n".join(lines)


def _reading(check: str, runbook_url: str, tell: Tell) -> str:
    address = f"{runbook_url}#{anchor(check)}"
    read = tell(t("Read more:"))
    return f"{read} {_code(address)}{tell(t(', '))}{_code('commcheck explain ' + check)}"


def _foot(record: Record, tell: Tell) -> str:
    info = record.info
    sources = escape(", ".join(info.inventory))
    limit = f", {tell(t('limit'))} {_code(info.limit)}" if info.limit else ""
    hosts = counted(len(record.plan.hosts), "host")
    asked = (
        Words(f"inventory {sources}{limit}, {hosts.en}", f"主机清单 {sources}{limit}，{hosts.zh}")
        if info.noun == "host"
        else Words(f"input {sources}", f"输入 {sources}")
    )
    return tell(
        Words(
            f"Run {_code(info.run_id)}, {record.state}: {asked.en}, "
            f"commcheck {escape(info.version)}. Evidence: report.html in the run's folder.",
            f"运行 {_code(info.run_id)}，{known(record.state).zh}：{asked.zh}，"
            f"commcheck {escape(info.version)}。证据见运行目录中的 report.html。",
        )
    )


# --- escaping -----------------------------------------------------------------------------------

# A backslash before ASCII punctuation is plain text in CommonMark; inside a word "_" is anyway.
_SPECIAL: Final = regex(r"[\\`*\[\]<>#|~&$]|(?<!\w)_|_(?!\w)")
_AT_START: Final = regex(r"^(\d{0,9})([-+=.)])")
# Forges look for these in the text after Markdown has dropped the backslash: a mention, a
# reference to an issue or merge request, an address. A zero-width space ends the word.
_REFERENCE: Final = regex(r"@|#(?=\w)|!(?=\d)|:(?=//)|(?<=www)\.", re.IGNORECASE)


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

"""The text summary on stdout. What matters most stands last: that is what stays on the screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from commcheck.console import within
from commcheck.diagnose import BREAKS_HERE, Diagnosis, Group, Rung, diagnose
from commcheck.headline import Whole
from commcheck.lazy import dataclass
from commcheck.model import Kind, Status, Words
from commcheck.report import changes_text, steps
from commcheck.report.cleaning import columns, for_console
from commcheck.report.diff import tally
from commcheck.report.interface import counted, known, t
from commcheck.report.lines import beside, wrapped
from commcheck.report.ranges import fold_hosts
from commcheck.report.record import INTERRUPTED, JOB, PlannedCheck, Record
from commcheck.report.unreached import Unreached, unreached
from commcheck.report.words import (
    RUNBOOK,
    RUNBOOK_ZH,
    Lang,
    columns_of,
    overrides,
    padded,
    say,
)

MAX_GROUPS: Final = 40
"""Causes shown; the rest is counted, and is in ``results.json``."""

MAX_NOTES: Final = 3
"""Notes shown of a judged file; a short log leaves a dozen rules that could not be judged."""

_HOSTS_WIDTH: Final = 25
_CHECK_WIDTH: Final = 29
_LABEL_WIDTH: Final = 12
_COUNTS_WIDTH: Final = 52
_WIDE: Final = 80
"""Columns from which the ladder's words stand in a column of their own."""

_GLYPHS: Final = {
    "pass": ("✓", "+"),
    "warn": ("!", "!"),
    "fail": ("✕", "x"),
    "error": ("?", "?"),
    "gated": ("·", "."),
}
_SKIP_GLYPH: Final = ("\N{EN DASH}", "-")
_COLOURS: Final = {"pass": "32", "warn": "33", "fail": "1;31", "error": "35"}


@dataclass(frozen=True, slots=True)
class Look:
    """How text is shown: glyphs beyond ASCII or not, colours or not, columns, language."""

    glyphs: bool
    colour: bool
    width: int
    lang: Lang = "en"

    def say(self, words: Words) -> str:
        """The text in the language of the screen."""
        return say(words, self.lang)

    def label(self, english: str) -> str:
        """What stands in front of a line, in a column of its own: ``Report:      ``."""
        return padded(self.say(t(english)), _LABEL_WIDTH) + " "

    def glyph(self, word: str) -> str:
        """The mark of a status or kind."""
        return _GLYPHS.get(word, _SKIP_GLYPH)[0 if self.glyphs else 1]

    def hosts(self, hosts: Sequence[str], most: int) -> str:
        """Their names, folded; of more than ``most`` characters the first, and how many they are.

        Never cut: half a number is another host.
        """
        folded = fold_hosts(hosts)
        if len(folded) <= most or len(hosts) == 1:
            return folded
        return f"{self.say(counted(len(hosts), 'host'))} ({hosts[0]}, ...)"

    def paint(self, text: str, word: str) -> str:
        """The text in the colour of a status; what has no colour stays as it is."""
        if not self.colour or word not in _COLOURS:
            return text
        return f"\x1b[{_COLOURS[word]}m{text}\x1b[0m"


def render(
    record: Record,
    folder: Path | None = None,
    *,
    unicode: bool = True,
    color: bool = False,
    width: int = 120,
    runbook_url: str = RUNBOOK,
    lang: Lang = "en",
    drain: Sequence[str] = (),
) -> str:
    """The summary of a run. ``folder`` is where its reports are; ``width`` is in columns.

    ``drain``: commands that take failing hosts out of the scheduler, for a person to run.

    Without ``unicode`` it is pure ASCII and English, for a stream that can show no more. What a
    host said and what was measured is English in every language.
    """
    look = Look(unicode, color, width, lang if unicode else "en")
    if look.lang == "zh" and runbook_url == RUNBOOK:
        runbook_url = RUNBOOK_ZH
    diagnosis = diagnose(record)
    sorts = unreached(record)
    blocks = [
        [
            *_overrides(record.plan.checks, look),
            *_notes(record, look),
        ],
        list(_groups(diagnosis, record.info.noun != "host", sorts, look)),
        list(changes_text.lines(record.changes, look)) if record.changes else [],
        # Of files one layer was asked.
        _ladder([r for r in diagnosis.ladder if r.cases or record.info.noun == "host"], look),
        [columns(line) for line in record.screen],
        [
            *_headline(diagnosis, look),
            *(look.label("Drain:") + for_console(command, 4000) for command in drain),
            *steps.lines(diagnosis, record.info.noun != "host", runbook_url, look),
            *steps.of_unreached(diagnosis, sorts, runbook_url, look),
            *_last_words(diagnosis, folder, look),
        ],
    ]
    text = "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
    text += _last_line(record, diagnosis, look) + "\n"
    if record.changes is not None and record.info.settings.get("again"):
        # Whoever asked again wants to know this one thing; hosts are never cut off it.
        text += for_console(tally(record.changes), 4000) + "\n"
    return text if look.glyphs else within(text, "ascii")


def duration(seconds: float) -> str:
    """``0.41 s``, ``12.3 s``, ``4 min 12 s``, ``2 h 3 min``."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


# --- blocks -------------------------------------------------------------------------------------


def _overrides(checks: tuple[PlannedCheck, ...], look: Look) -> Iterator[str]:
    yield from (for_console(look.say(each), 2000) for each in overrides(checks).values())


def _notes(record: Record, look: Look) -> Iterator[str]:
    shown = record.notes if record.info.noun == "host" else record.notes[:MAX_NOTES]
    for note in shown:
        # Whole: what to turn on stands at its end.
        yield from wrapped(look.say(t("note: ")) + for_console(note, 2000), look.width, "  ")
    if left := record.notes[len(shown) :]:
        more = look.say(counted(len(left), "more note"))
        yield look.say(Words(f"... and {more}, in the report", f"……另有 {more}，见报告"))


def _groups(
    diagnosis: Diagnosis, of_files: bool, sorts: Sequence[Unreached], look: Look
) -> Iterator[str]:
    """Upside down: the lowest layer's largest cause comes last, next to the ladder.

    A thousand hosts get a line a cause.
    """
    # What was never run is one sentence below the headline, not a line for every check.
    known = [group for group in diagnosis.groups if group.slug != INTERRUPTED]
    groups, also = _once(known)
    shown = groups[:MAX_GROUPS]
    if len(groups) > len(shown):
        left = look.say(counted(len(groups) - len(shown), "more cause"))
        yield look.say(Words(f"... and {left}", f"……另有 {left}"))
    for group in reversed(shown):
        word = group.status.value
        reason = _reason(group, look)
        if others := also[group.reason, group.hosts]:
            more = look.say(counted(others, "more check"))
            reason = look.say(Words(f"(and {more}) {reason}", f"（另有 {more}）{reason}"))
        if of_files:
            yield from (look.paint(line, word) for line in _whole(group, reason, look))
            continue
        for hosts, said in _said(group, reason, sorts, diagnosis, look):
            where = padded(for_console(look.hosts(hosts, _HOSTS_WIDTH)), _HOSTS_WIDTH)
            left = f"{where} {look.glyph(word)} {for_console(group.check):{_CHECK_WIDTH}} "
            lines = beside(left, for_console(said, 2000), look.width)
            yield from (look.paint(line, word) for line in lines)


def _said(
    group: Group, reason: str, sorts: Sequence[Unreached], diagnosis: Diagnosis, look: Look
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Hosts and what is said of them: of those that could not be reached, a line a reason."""
    mine = [each for each in sorts if each.error == group.slug and each.hosts[0] in group.hosts]
    if group.status is not Status.ERROR or not mine:
        yield group.hosts, reason
        return
    for each in reversed(mine):
        example = each.example if each.reasons == 1 else f"{look.say(t('e.g.'))} {each.example}"
        is_first = diagnosis.cause is None and each is sorts[0]  # it stands below the headline
        remedy = f"; {each.remedy}" if each.remedy and not is_first else ""
        yield each.hosts, f"{each.code}: {example}{remedy}"


def _whole(group: Group, reason: str, look: Look) -> Iterator[str]:
    where = for_console(look.hosts(group.hosts, _HOSTS_WIDTH))
    glyph = look.glyph(group.status.value)
    head = f"{glyph} {group.check}: " if where == JOB else f"{glyph} {where}  {group.check}: "
    yield from wrapped(head + for_console(reason, 2000), look.width, "  ")
    if group.status is Status.WARN:  # a fail's remedies stand below the headline
        for fix in group.fixes[:2]:
            said = f"    {for_console(look.say(fix.says), 2000)}"
            yield from wrapped(said, look.width, "      ")


def _once(groups: list[Group]) -> tuple[list[Group], Counter[tuple[str, tuple[str, ...]]]]:
    """What several checks say of the same hosts in the same words is one line."""
    also: Counter[tuple[str, tuple[str, ...]]] = Counter()
    first: dict[tuple[str, tuple[str, ...]], Group] = {}
    for group in groups:
        key = (group.reason, group.hosts)
        if first.setdefault(key, group) is not group:
            also[key] += 1
    return list(first.values()), also


def _reason(group: Group, look: Look) -> str:
    """What all its hosts share; where they differ, one of them as an example."""
    example = group.reason if group.reasons == 1 else f"{look.say(t('e.g.'))} {group.reason}"
    if group.status is Status.ERROR:
        return example if group.reasons == 1 else f"{group.slug}, {example}"
    if len(group.hosts) == 1 and look.lang == "en":
        return group.reason
    # In Chinese the title always stands before the reason, which is English.
    title = look.say(group.title)
    return example if title == group.reason else f"{title}{look.say(t(': '))}{example}"


def _ladder(rungs: Sequence[Rung], look: Look) -> list[str]:
    counts = [_counts(rung, look) for rung in rungs]
    wide = max(map(columns_of, counts), default=0)
    if look.width >= _WIDE:
        # As ever, where there is room: who reads runs beside one another looks at one place.
        wide = max(wide + 2, _COUNTS_WIDTH)
    return [_rung(rung, told, wide, look) for rung, told in zip(rungs, counts, strict=True)]


def _counts(rung: Rung, look: Look) -> str:
    if not (rung.judged or rung.hosts):
        return "-"
    parts = [f"{rung.judged:,} {look.say(t('judged'))}"]
    parts += [
        f"{rung.hosts[word]:,} {look.say(known(_OF_HOSTS.get(word, word)))}"
        for word in ("pass", "warn", "fail", "error", "gated")
        if rung.hosts.get(word)
    ]
    return "   ".join(parts)


def _rung(rung: Rung, counts: str, wide: int, look: Look) -> str:
    arrow = "<- " if not look.glyphs else "← "
    word = (arrow if rung.word == BREAKS_HERE else "") + look.say(known(rung.word))
    layer = padded(look.say(known(rung.layer.value)), _LABEL_WIDTH)
    text = f"{layer} {padded(counts, wide)} {word}"
    status = "fail" if rung.word == BREAKS_HERE else rung.word.split(",")[0]
    return look.paint(text, status)


_OF_HOSTS: Final = {"error": "not in full"}


def _headline(diagnosis: Diagnosis, look: Look) -> Iterator[str]:
    for line in wrapped(for_console(look.say(diagnosis.says), 2000), look.width):
        yield look.paint(line, diagnosis.status.value)
    for sentence in diagnosis.says_more:
        yield from wrapped(for_console(look.say(sentence), 2000), look.width)


def _last_words(diagnosis: Diagnosis, folder: Path | None, look: Look) -> Iterator[str]:
    if any(rung.cases.get(Kind.NOT_PERMITTED) for rung in diagnosis.ladder):
        yield look.say(t("Not measured: what loads the fabric; add --allow load"))
    if folder is not None:
        yield look.label("Report:") + for_console(str(folder), 2000)


_WORDS: Final = {
    Status.PASS: "PASS",
    Status.WARN: "PASS",
    Status.FAIL: "FAIL",
    Status.ERROR: "UNKNOWN",
    Status.SKIP: "UNDECIDED",
}


def _last_line(record: Record, diagnosis: Diagnosis, look: Look) -> str:
    whole = Whole(diagnosis.host_count, record.info.noun, record.plan.hosts)
    parts: list[Words] = []
    if diagnosis.layer is not None:
        layer = diagnosis.layer.value
        parts.append(Words(f"{layer} layer", known(layer).zh))
        if whole.counts(diagnosis.hosts):
            parts.append(whole.part(len(diagnosis.hosts)))
    else:
        parts.append(whole.words)
    if unjudged := len(diagnosis.unjudged):
        parts.append(Words(f"{unjudged:,} not judged in full", f"{unjudged:,} 个未能完整判定"))
    if unmeasured := sum(rung.cases.get(Kind.NOT_PERMITTED, 0) for rung in diagnosis.ladder):
        parts.append(Words(f"{unmeasured:,} not measured", f"{unmeasured:,} 项未测量"))
    if record.state != "complete":
        parts.append(Words(record.state.upper(), known(record.state).zh))
    if record.ended is not None:
        took = duration(record.seconds)
        parts.append(Words(took, took))
    parts.append(Words(f"exit {record.exit_code}", f"退出码 {record.exit_code}"))
    word = look.say(known(_WORDS[diagnosis.status]))
    told = look.say(t(", ")).join(look.say(part) for part in parts)
    return look.paint(f"{word}  {told}", diagnosis.status.value)

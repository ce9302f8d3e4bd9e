"""The text summary on stdout. What matters most stands last: that is what stays on the screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from commcheck.diagnose import BREAKS_HERE, Diagnosis, Fix, Group, Rung, diagnose
from commcheck.headline import many
from commcheck.model import Kind, Status
from commcheck.report import changes_text
from commcheck.report.cleaning import columns, for_console
from commcheck.report.diff import tally
from commcheck.report.junit import RUNBOOK, anchor
from commcheck.report.ranges import fold_hosts
from commcheck.report.record import INTERRUPTED, PlannedCheck, Record

MAX_GROUPS: Final = 40
"""Causes shown; the rest is counted, and is in ``results.json``."""

_HOSTS_WIDTH: Final = 25
_CHECK_WIDTH: Final = 29

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
    """How text is shown: glyphs beyond ASCII or not, colours or not, columns."""

    glyphs: bool
    colour: bool
    width: int

    def glyph(self, word: str) -> str:
        """The mark of a status or kind."""
        return _GLYPHS.get(word, _SKIP_GLYPH)[0 if self.glyphs else 1]

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
) -> str:
    """The summary of a run. ``folder`` is where its reports are; ``width`` is in columns.

    Without ``unicode`` it is pure ASCII, for a stream that can show no more.
    """
    look = Look(unicode, color, width)
    diagnosis = diagnose(record)
    blocks = [
        [*_overrides(record.plan.checks), *(_line(f"note: {n}", look) for n in record.notes)],
        list(_groups(diagnosis, look)),
        list(changes_text.lines(record.changes, look)) if record.changes else [],
        [
            _rung(rung, look)
            for rung in diagnosis.ladder
            if rung.cases or record.info.noun == "host"  # of files one layer was asked
        ],
        [columns(line) for line in record.screen],
        [*_headline(diagnosis, look), *_next_step(diagnosis, runbook_url, folder)],
    ]
    text = "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
    text += _last_line(record, diagnosis, look) + "\n"
    if record.changes is not None and record.info.settings.get("again"):
        # Whoever asked again wants to know this one thing; hosts are never cut off it.
        text += for_console(tally(record.changes), 4000) + "\n"
    return text if look.glyphs else text.encode("ascii", "replace").decode("ascii")


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


def _line(text: str, look: Look) -> str:
    return for_console(text, max(40, look.width))


def _overrides(checks: tuple[PlannedCheck, ...]) -> Iterator[str]:
    for check in checks:
        if check.overrides:
            line = f"site check {check.id} from {check.source} overrides {check.overrides}"
            yield for_console(line, 2000)


def _groups(diagnosis: Diagnosis, look: Look) -> Iterator[str]:
    """Upside down: the lowest layer's largest cause comes last, next to the ladder."""
    # What was never run is one sentence below the headline, not a line for every check.
    known = [group for group in diagnosis.groups if group.slug != INTERRUPTED]
    groups, also = _once(known)
    shown = groups[:MAX_GROUPS]
    if len(groups) > len(shown):
        yield f"... and {len(groups) - len(shown):,} more causes"
    for group in reversed(shown):
        word = group.status.value
        reason = _reason(group)
        if others := also[group.reason, group.hosts]:
            reason = f"(and {many(others, 'more check')}) {reason}"
        # What to turn on stands at the end of the sentence: it is never cut.
        room = 300 if group.status is Status.SKIP else 0
        text = _row(look.glyph(word), _who(group.hosts), group.check, reason, look, room)
        yield look.paint(text, word)


def _once(groups: list[Group]) -> tuple[list[Group], Counter[tuple[str, tuple[str, ...]]]]:
    """What several checks say of the same hosts in the same words is one line."""
    also: Counter[tuple[str, tuple[str, ...]]] = Counter()
    first: dict[tuple[str, tuple[str, ...]], Group] = {}
    for group in groups:
        key = (group.reason, group.hosts)
        if first.setdefault(key, group) is not group:
            also[key] += 1
    return list(first.values()), also


def _who(hosts: tuple[str, ...]) -> str:
    folded = fold_hosts(hosts)
    if len(folded) <= _HOSTS_WIDTH or len(hosts) == 1:
        return folded
    return f"{len(hosts):,} hosts ({hosts[0]}, ...)"


def _reason(group: Group) -> str:
    """What all its hosts share; where they differ, one of them as an example."""
    example = group.reason if group.reasons == 1 else f"e.g. {group.reason}"
    if group.status is Status.ERROR:
        return example if group.reasons == 1 else f"{group.slug}, {example}"
    return group.reason if len(group.hosts) == 1 else f"{group.title.en}: {example}"


def _row(glyph: str, who: str, check: str, reason: str, look: Look, room: int) -> str:
    left = f"{for_console(who):{_HOSTS_WIDTH}} {glyph} {for_console(check):{_CHECK_WIDTH}} "
    room = max(30, room, look.width - len(left))
    return left + for_console(reason, room)


def _rung(rung: Rung, look: Look) -> str:
    parts = []
    if rung.judged or rung.hosts:
        parts.append(f"{rung.judged:,} judged")
        parts += [
            f"{rung.hosts[word]:,} {'not judged' if word == 'error' else word}"
            for word in ("pass", "warn", "fail", "error", "gated")
            if rung.hosts.get(word)
        ]
    arrow = "<-" if not look.glyphs else "←"
    word = f"{arrow} {BREAKS_HERE}" if rung.word == BREAKS_HERE else rung.word
    text = f"{rung.layer.value:12} {'   '.join(parts) or '-':52} {word}"
    status = "fail" if rung.word == BREAKS_HERE else rung.word.split(",")[0]
    return look.paint(text, status)


def _headline(diagnosis: Diagnosis, look: Look) -> Iterator[str]:
    yield look.paint(_line(diagnosis.headline, look), diagnosis.status.value)
    for sentence in diagnosis.more:
        yield _line(sentence, look)


def _next_step(diagnosis: Diagnosis, runbook_url: str, folder: Path | None) -> Iterator[str]:
    if diagnosis.cause is not None:
        for share in diagnosis.cause.shares[:2]:
            yield f"{'Shared by:':12} {for_console(share.words.en, 2000)}"
        for label, told in (
            ("For it:", diagnosis.cause.speaks_for),
            ("Against:", diagnosis.cause.speaks_against),
        ):
            yield from (f"{label:12} {for_console(words.en, 2000)}" for words in told[:2])
    if diagnosis.fix is not None and diagnosis.cause is not None:
        steps: dict[int, list[Fix]] = {}
        for fix in diagnosis.cause.fixes:
            steps.setdefault(fix.step, []).append(fix)
        for label, same in zip(("Fix first:", *[""] * len(steps)), steps.values(), strict=False):
            hosts = for_console(fold_hosts(same[0].hosts))
            more = f"   (and {len(same) - 1} like it)" if len(same) > 1 else ""
            # Never cut: a remedy is there to be copied whole.
            where = "" if hosts == "@job" else f"   on {hosts}"
            yield f"{label or 'then:':12} {for_console(same[0].text, 2000)}{where}{more}"
        page = f"{runbook_url}#{anchor(diagnosis.cause.check)}"
        who = diagnosis.fix.remedy.who
        yield f"Read:        {page}" + ("" if who == "operator" else f"   (needs the {who})")
    if any(rung.cases.get(Kind.NOT_PERMITTED) for rung in diagnosis.ladder):
        yield "Not measured: what loads the fabric; add --allow load"
    if folder is not None:
        yield f"Report:      {for_console(str(folder), 2000)}"


_WORDS: Final = {
    Status.PASS: "PASS",
    Status.WARN: "PASS",
    Status.FAIL: "FAIL",
    Status.ERROR: "UNKNOWN",
    Status.SKIP: "UNDECIDED",
}


def _last_line(record: Record, diagnosis: Diagnosis, look: Look) -> str:
    parts = []
    if diagnosis.layer is not None:
        parts.append(f"{diagnosis.layer.value} layer")
        if record.info.noun == "host" or diagnosis.host_count > 1:
            parts.append(
                f"{len(diagnosis.hosts):,} of {diagnosis.host_count:,} {record.info.noun}s"
            )
    else:
        parts.append(many(diagnosis.host_count, record.info.noun))
    if diagnosis.unjudged:
        parts.append(f"{len(diagnosis.unjudged):,} not judged in full")
    if unmeasured := sum(rung.cases.get(Kind.NOT_PERMITTED, 0) for rung in diagnosis.ladder):
        parts.append(f"{unmeasured:,} not measured")
    if record.state != "complete":
        parts.append(record.state.upper())
    if record.ended is not None:
        parts.append(duration(record.seconds))
    parts.append(f"exit {record.exit_code}")
    word = _WORDS[diagnosis.status]
    return look.paint(f"{word}  {', '.join(parts)}", diagnosis.status.value)

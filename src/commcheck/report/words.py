"""The words, marks and shapes that reports for people share: one mark a status, in every report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, Literal
from unicodedata import east_asian_width

from commcheck.diagnose import BREAKS_HERE, FAILS_TOO, Rung
from commcheck.lazy import dataclass, regex
from commcheck.model import Evidence, Kind, Status, Words
from commcheck.report.cleaning import clean
from commcheck.report.events import plain
from commcheck.report.interface import known
from commcheck.report.ranges import fold_hosts
from commcheck.report.record import PlannedCheck

Lang = Literal["en", "zh"]

RUNBOOK: Final = "runbook.md"
RUNBOOK_ZH: Final = "runbook.zh.md"
"""What an English and a Chinese report link to, beside it."""


def overrides(checks: Iterable[PlannedCheck]) -> Mapping[str, Words]:
    """Which checks of a site stand in for others: a sentence for each, by the check's id."""
    return {
        check.id: Words(
            f"site check {check.id} from {check.source} overrides {check.overrides}",
            f"站点检查 {check.id}（来自 {check.source}）替代 {check.overrides}",
        )
        for check in checks
        if check.overrides
    }


NOT_ASKED: Final = ""
"""Presentation word of a check that was not planned for a host."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How a status is shown: a glyph and a word, never a colour alone. ``tone`` picks colours."""

    glyph: str
    word: str
    tone: str  # "pass", "warn", "fail", "error", "skip" or "gated"

    @property
    def says(self) -> Words:
        """Glyph and word, in both languages."""
        return Words(str(self), f"{self.glyph} {known(self.word).zh}")

    def __str__(self) -> str:
        return f"{self.glyph} {self.word}"


_DASH: Final = "\N{EN DASH}"

MARKS: Final[Mapping[str, Mark]] = {
    "pass": Mark("✓", "pass", "pass"),
    "warn": Mark("!", "warn", "warn"),
    "fail": Mark("✕", "FAIL", "fail"),
    "error": Mark("?", "error", "error"),
    Kind.UNDECIDABLE: Mark("?", "undecided", "error"),
    Kind.BUSY: Mark("?", "busy", "error"),
    Kind.BLOCKED: Mark("·", "blocked", "gated"),
    Kind.GATED: Mark("·", "gated", "gated"),
    Kind.NOT_APPLICABLE: Mark(_DASH, "n/a", "skip"),
    Kind.NOT_PERMITTED: Mark(_DASH, "not permitted", "skip"),
    Kind.WAIVED: Mark(_DASH, "waived", "skip"),
    "skip": Mark(_DASH, "n/a", "skip"),
    NOT_ASKED: Mark(_DASH, "not asked", "skip"),
}
"""By presentation word."""

LOUD: Final = ("fail", "error", "warn", Kind.UNDECIDABLE, Kind.BUSY)
"""Presentation words that a person has to look at, worst first."""

VERDICTS: Final[Mapping[Status, Mark]] = {
    Status.PASS: Mark("✓", "PASS", "pass"),
    Status.WARN: Mark("!", "PASS, WITH WARNINGS", "warn"),
    Status.FAIL: Mark("✕", "FAIL", "fail"),
    Status.ERROR: Mark("?", "UNKNOWN", "error"),
    Status.SKIP: Mark("?", "UNDECIDED", "error"),
}
"""Of a whole run."""

EXIT_CODES: Final[Mapping[int, str]] = {
    0: "all that was judged is right",
    1: "something fails",
    3: "nothing fails, but something could not be judged",
    130: "interrupted",
    143: "interrupted",
}


def rung_mark(rung: Rung) -> Mark:
    """The mark of a layer. Only a plain ``pass`` looks like one."""
    match rung.word:
        case word if word in (BREAKS_HERE, FAILS_TOO):
            return Mark("✕", word, "fail")
        case "partly judged" | "not judged":
            return Mark("?", rung.word, "error")
        case "pass":
            return Mark("✓", rung.word, "pass")
        case word if word.startswith("pass, with warnings"):
            return Mark("!", word, "warn")
        case word if word.startswith("pass"):  # so far, or with waivers: not a plain pass
            return Mark("✓", word, "gated")
        case word:
            return Mark(_DASH, word, "skip")


# --- texts --------------------------------------------------------------------------------------


def say(words: Words, lang: Lang) -> str:
    """The text in a language; English where there is no other."""
    return (words.zh if lang == "zh" else words.en) or words.en


def padded(text: str, columns: int) -> str:
    """The text filled with blanks to so many columns."""
    return text + " " * (columns - columns_of(text))


def columns_of(text: str) -> int:
    """How many it takes on a terminal; a Han character takes two."""
    return len(text) + sum(east_asian_width(character) in "WF" for character in text)


def utc(when: datetime) -> str:
    """``2026-11-29 15:04:05Z``: the same for every reader, wherever they are."""
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def folded(hosts: Iterable[str], limit: int = 4000) -> str:
    """Host ranges of at most about ``limit`` characters, cut between two ranges."""
    text = fold_hosts(map(clean, hosts))
    if len(text) <= limit:
        return text
    return text[: max(text.rfind(",", 0, limit), 1)] + ", …"


def pieces(text: str) -> list[str]:
    """A long list cut after commas, where a page may break its line: never within a number."""
    return re.findall(r".{1,24}[^,]*(?:,|$)", text, re.DOTALL)


def shown(value: object) -> str:
    """A measured or wanted value as a person reads it: ``1500``, ``[3]``, ``dscp``, ``none``."""
    match plain(value):
        case None:
            return "none"
        case bool() as flag:
            return "yes" if flag else "no"
        case "":
            return '""'
        case list() as items:
            return f"[{', '.join(shown(item) for item in items)}]"
        case dict() as items:
            return ", ".join(f"{name} {shown(item)}" for name, item in items.items())
        case other:
            return str(other)


def measured(values: Mapping[str, object]) -> str:
    """``mtu_bytes = 1500, port = 1``; the unit is in each name."""
    return ", ".join(f"{name} = {shown(value)}" for name, value in values.items())


_NUMBER: Final = regex(r"[0-9a-fA-F]*[0-9][0-9a-fA-F]*")


def alike(text: str) -> str:
    """The text with numbers masked: texts with the same result differ in numbers only."""
    return _NUMBER.sub("#", text)


def middle_cut(text: str, limit: int) -> str:
    """Head and tail of a long text: errors stand at its end as often as at its start."""
    if len(text) <= limit:
        return text
    half = limit // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[... {left_out:,} characters left out]\n{text[-half:]}"


# --- evidence -----------------------------------------------------------------------------------

_PHASES: Final = {"start": "at the start", "once": "", "end": "at the end"}


def command_of(evidence: Evidence) -> tuple[str, str]:
    """The command line, and ``at the start`` or ``at the end`` where it was asked twice."""
    key = clean(evidence.key)  # whole: half of it might no longer look like a secret
    phase, _, command = key.partition(": ")
    return (command, _PHASES[phase]) if phase in _PHASES else (key, "")

"""The report as one HTML file: complete without style and script, and nothing in it is executed.

Remote output is hostile. Every value passes ``clean`` and is escaped by Jinja; nothing is marked
safe, ids come from ``slug``, and a content security policy forbids what slips through: the one
script is ours, by its digest. No clock and no random: the same record gives the same bytes.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined

from commcheck.diagnose import Diagnosis, diagnose
from commcheck.lazy import dataclass
from commcheck.model import Kind, Layer
from commcheck.report import changes_text
from commcheck.report.bytecode import cache_beside
from commcheck.report.cards import Card, Gap, cards, gaps
from commcheck.report.cleaning import clean
from commcheck.report.evidence import Shelf
from commcheck.report.figures import Picture, pictures
from commcheck.report.fleet import Fleet, Verdicts, first_failing, fleet, verdicts
from commcheck.report.fleet_map import LEFT, WIDTH, FleetMap, fleet_map
from commcheck.report.hosts import Hosts, Loud, host_pages, loud_hosts
from commcheck.report.interface import counted, known, t
from commcheck.report.junit import anchor
from commcheck.report.record import JOB, Record
from commcheck.report.runbook_pages import Section, sections
from commcheck.report.switches import Ports, switch_ports
from commcheck.report.text import duration
from commcheck.report.words import (
    EXIT_CODES,
    RUNBOOK,
    VERDICTS,
    Lang,
    Mark,
    folded,
    how_many,
    pieces,
    rung_mark,
    say,
    utc,
)

MAX_BYTES: Final = 10_000_000
"""Beyond this browsers open a page slowly, and chat programs refuse it."""

MAX_NODES: Final = 15_000
"""Elements that Chromium opens well within a second on two cores."""

_LANG_TAGS: Final = {"en": "en", "zh": "zh-Hans"}


@dataclass(frozen=True, slots=True)
class Caps:
    """How much a page holds, beyond what it needs to name every cause."""

    hosts: int = 300  # shown one by one
    lines: int = 500  # verdicts of them all
    patterns: int = 200  # rows of the fleet table
    cells: int = 3000
    cards: int = 100
    figures: int = 12
    evidence: int = 4096  # characters of one answer

    @property
    def halved(self) -> Caps:
        """The next smaller page. A cause keeps its card whatever else goes."""
        return Caps(
            self.hosts // 2,
            self.lines // 2,
            self.patterns // 2,
            self.cells // 2,
            self.cards,
            self.figures // 2,
            max(self.evidence // 2, 256),
        )


@dataclass(frozen=True, slots=True)
class Page:
    """What the template shows."""

    record: Record
    diagnosis: Diagnosis
    exit_code: int
    verdict: Mark
    cause: Card | None  # of the headline
    cards: tuple[Card, ...]
    more_cards: int
    changes: changes_text.Section | None
    gaps: tuple[Gap, ...]
    fleet: Fleet
    map: FleetMap | None
    columns: tuple[str, ...]  # the checks of the map
    first_failing: tuple[tuple[Layer, tuple[str, ...]], ...]
    hosts: Hosts
    pictures: tuple[Picture, ...]
    more_pictures: int
    runbook: tuple[Section, ...]  # of the checks that found something
    checks: Counter[Layer]  # planned, by layer
    unmeasured: int  # cases that were not permitted
    caps: Caps
    lowered: bool

    @property
    def sections(self) -> dict[str, str]:
        """Ids of the runbook's sections in this page, by check."""
        anchors = {section.anchor for section in self.runbook}
        return {
            check.id: f"runbook-{anchor(check.id)}"
            for check in self.record.plan.checks
            if anchor(check.id) in anchors
        }


def render(
    record: Record, *, runbook_url: str = RUNBOOK, lang: Lang = "en", runbook: str = ""
) -> bytes:
    """The whole page, in both languages; ``lang`` is the one that is read without a script.

    ``runbook`` is its text: the sections for what was found stand in the page. ``runbook_url`` is
    relative, or http(s); raises ``ValueError`` for any other scheme.
    """
    address = _checked(runbook_url)
    whole, diagnosis = verdicts(record), diagnose(record)
    sources = _Sources(
        record,
        diagnosis,
        record.exit_code,
        whole,
        loud_hosts(record),
        switch_ports(record),
        fleet_map(whole, record.plan.hosts or [h for _, hosts in whole.patterns for h in hosts]),
        sections(runbook, (anchor(group.check) for group in diagnosis.groups)),
    )
    caps = Caps()
    while True:
        data = _html(_page(sources, caps), address, lang)
        # What is no element is escaped, so every other "<" opens one.
        nodes = data.count(b"<") - data.count(b"</")
        if (len(data) <= MAX_BYTES and nodes <= MAX_NODES) or caps.hosts == 0:
            return data
        caps = caps.halved


@dataclass(frozen=True, slots=True)
class _Sources:
    """What does not depend on how much fits: a large run is walked through once."""

    record: Record
    diagnosis: Diagnosis
    exit_code: int
    verdicts: Verdicts
    loud: Loud
    ports: Ports
    map: FleetMap | None
    runbook: tuple[Section, ...]


def _page(sources: _Sources, caps: Caps) -> Page:
    record, diagnosis = sources.record, sources.diagnosis
    shelf = Shelf(caps.evidence)
    shown, more_pictures = pictures(record, caps.figures)
    causes = cards(record, diagnosis, shelf)  # first: the hosts refer to what stands above them
    return Page(
        record=record,
        diagnosis=diagnosis,
        exit_code=sources.exit_code,
        verdict=VERDICTS[diagnosis.status],
        cause=next((card for card in causes if card.group is diagnosis.cause), None),
        cards=causes[: caps.cards],
        more_cards=max(0, len(causes) - caps.cards),
        changes=changes_text.section(record.changes, caps.cards) if record.changes else None,
        gaps=gaps(record, shelf)[: caps.cards],
        fleet=fleet(sources.verdicts, max_patterns=caps.patterns, max_cells=caps.cells),
        map=sources.map,
        columns=sources.verdicts.checks,
        first_failing=first_failing(record, diagnosis),
        hosts=host_pages(
            sources.loud, shelf, sources.ports, max_hosts=caps.hosts, max_lines=caps.lines
        ),
        pictures=shown,
        more_pictures=more_pictures,
        runbook=sources.runbook,
        checks=Counter(check.layer for check in record.plan.checks),
        unmeasured=sum(rung.cases.get(Kind.NOT_PERMITTED, 0) for rung in diagnosis.ladder),
        caps=caps,
        lowered=caps != Caps(),
    )


def _checked(url: str) -> str:
    """Browsers drop blanks and control characters before they look for a scheme."""
    plain = re.sub(r"[\x00-\x20]", "", url)
    if plain != url or urlsplit(plain).scheme not in ("", "http", "https"):
        raise ValueError(f"runbook {url!r}: wanted a relative path, or an http or https address")
    return url


# --- the template -------------------------------------------------------------------------------


def _html(page: Page, runbook: str, lang: Lang) -> bytes:
    environment = _environment()
    style = environment.get_template("report.css").render()
    script = environment.get_template("report.js").render()
    numbers = _Numbers(page.record)
    text = environment.get_template("report.html").render(
        page=page,
        record=page.record,
        diagnosis=page.diagnosis,
        style_hash=_digest(style),
        script_hash=_digest(script),
        island=_island(page, numbers, runbook),
        numbers=numbers.of,
        exit_code=EXIT_CODES[page.exit_code],
        runbook=partial(_runbook, runbook),
        say=partial(say, lang=lang),
        other=partial(say, lang="en" if lang == "zh" else "zh"),
        t=t,
        known=known,
        counted=counted,
        lang=lang,
        tag=_LANG_TAGS[lang],
        of_hosts=page.record.info.noun == "host",
        how_many=partial(how_many, page.record),
        job=JOB,
    )
    return text.encode("utf-8", "backslashreplace")


def _digest(text: str) -> str:
    return base64.b64encode(sha256(text.encode()).digest()).decode()


class _Numbers:
    """Hosts as ranges of their places in a list: a script finds them, and a page stays small."""

    def __init__(self, record: Record) -> None:
        named = dict.fromkeys(record.plan.hosts)
        for result in record.sorted:
            named[result.host] = None
            if result.host.startswith("@"):
                for finding in result.findings:
                    named.update(dict.fromkeys(finding.verdict.hosts))
        self.hosts = [host for host in named if not host.startswith("@")]
        self._place = {host: place for place, host in enumerate(self.hosts)}

    def place(self, host: str) -> int:
        """A host's place in the list."""
        return self._place[host]

    def of(self, hosts: Iterable[str]) -> str:
        """``0-3,7``; empty where none of them is a host."""
        places = sorted(self._place[host] for host in hosts if host in self._place)
        ranges: list[list[int]] = []
        for place in places:
            if ranges and ranges[-1][1] == place - 1:
                ranges[-1][1] = place
            else:
                ranges.append([place, place])
        return ",".join(f"{a}-{b}" if b > a else f"{a}" for a, b in ranges)


_SCRIPT_WORDS: Final = {
    "copy": t("Copy"),
    "copied": t("Copied"),
    "press": t("Press Ctrl+C"),
    "match": t("{n} match"),
    "nothing": t("nothing matches"),
    "open": t("Open all"),
    "close": t("Close all"),
    "chat": t("Copy for chat"),
}


_LANGS: Final[tuple[Lang, ...]] = ("en", "zh")


def _island(page: Page, numbers: _Numbers, runbook: str) -> dict[str, Any]:
    """What the script needs beside the page: names, and the texts that it shows by itself."""
    drawn = page.map
    columns = page.columns
    return {
        "hosts": [clean(host) for host in numbers.hosts],
        "groups": {
            clean(name): numbers.of(hosts) for name, hosts in page.record.plan.groups.items()
        },
        "words": {name: [words.en, words.zh] for name, words in _SCRIPT_WORDS.items()},
        "chat": [_chat(page, runbook, lang) for lang in _LANGS],
        "map": {
            "left": LEFT,
            "column": (WIDTH - LEFT) / max(1, len(columns)),
            "checks": [clean(check) for check in columns],
            "rows": [
                [row.y, row.height, numbers.place(row.hosts[0]), len(row.hosts)]
                for row in drawn.rows
            ]
            if drawn
            else [],
        },
    }


def _chat(page: Page, runbook: str, lang: Lang) -> str:
    """A few lines of Markdown for whoever else is awake."""
    diagnosis = page.diagnosis
    lines = [f"**{say(known(page.verdict.word), lang)}**: {say(diagnosis.says, lang)}"]
    lines += [f"- {say(words, lang)}" for words in diagnosis.says_more]
    for card in page.cards[:5]:
        group = card.group
        who = "" if JOB in group.hosts else f" ({len(group.hosts):,}) `{folded(group.hosts, 300)}`"
        lines.append(f"- {group.layer}: {say(group.title, lang)}{who}")
    if diagnosis.fix is not None and diagnosis.cause is not None:
        lines.append(f"`{diagnosis.fix.text}`")
        lines.append(_runbook(runbook, diagnosis.cause.check))
    return clean("\n".join(lines))


def _runbook(url: str, check: str) -> str:
    return f"{url}#{anchor(check)}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("commcheck.report"),
        bytecode_cache=cache_beside(Path(__file__).with_name("templates"), Path(__file__)),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        bar=bar, duration=duration, folded=folded, pieces=pieces, rung_mark=rung_mark, utc=utc
    )
    return environment


def _finalize(value: Any) -> Any:
    """The one gate that every value passes on its way into the page, before it is escaped."""
    if hasattr(value, "__html__"):
        return value  # the template's own macros, whose values came this way already
    if value is None:
        raise TypeError("nothing to show: a template must say what an absent value means")
    return clean(str(value))


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a layer's bar, in thousandths of its width."""

    tone: str
    start: int
    width: int
    colour: str


_COLOURS: Final = {
    # Marks with at least 3.5 to 1 against white and against the dark ground, where no style is
    # allowed; the style sheet refines them.
    "fail": "#d03b2d",
    "error": "#b25e00",
    "warn": "#8a6d00",
    "pass": "#2e7d4f",
    "gated": "#7a8591",
    "skip": "#c3cbd4",
}


def bar(hosts: dict[str, int]) -> tuple[Segment, ...]:
    """A layer's hosts as a bar. What is wrong stands first, and one host in 2,000 is still seen."""
    total = sum(hosts.values())
    widths = {
        tone: max(12, round(1000 * hosts[tone] / total)) for tone in _COLOURS if hosts.get(tone)
    }
    if widths:
        widest = max(widths, key=lambda tone: widths[tone])
        widths[widest] += 1000 - sum(widths.values())
    start = 0
    segments = []
    for tone, width in widths.items():
        segments.append(Segment(tone, start, width, _COLOURS[tone]))
        start += width
    return tuple(segments)

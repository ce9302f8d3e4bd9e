"""The runbook beside a report, and its sections as blocks that a page can show.

The page must work without a network. Reads the Markdown that ``commcheck.runbook`` writes, and no
more of the language than that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from commcheck.discover import bundled_folder
from commcheck.lazy import dataclass, regex
from commcheck.model import Layer
from commcheck.report.words import RUNBOOK, RUNBOOK_ZH, Lang

Style = Literal["text", "code", "strong"]

_ANCHOR: Final = regex(r'^<a id="([a-z0-9-]+)"></a>$', re.MULTILINE)
_INLINE: Final = regex(r"`([^`]+)`|\*\*(.+?)\*\*|\[([^\]]+)\]\([^)]*\)", re.DOTALL)
_CHAPTER: Final = regex(r"^(?=## (?:Layer|第) \d)", re.MULTILINE)
_CHECK: Final = regex(r'^(?=<a id="[a-z0-9-]+"></a>\n\n### )', re.MULTILINE)
_FOUND: Final = "\nWhat it can find"


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of text in one style."""

    style: Style
    text: str


Line = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a list, or lines to be shown as they are."""

    kind: Literal["p", "ul", "pre"]
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """What the runbook says of one check; its causes stand in the report itself."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]


def as_bundled(lang: Lang) -> str:
    """The book of the bundled checks, as it comes with commcheck. Raises ``OSError``."""
    path = bundled_folder("checks").parent / (RUNBOOK_ZH if lang == "zh" else RUNBOOK)
    return path.read_text(encoding="utf-8")


def by_anchor(book: str) -> dict[str, str]:
    """What a book says of each check, with its causes, by the section's anchor."""
    parts = (part for chapter in _CHAPTER.split(book) for part in _CHECK.split(chapter)[1:])
    return {part.split('"', 2)[1]: part.rstrip("\n") + "\n" for part in parts}


def with_sections(book: str, sections: Mapping[str, str]) -> str:
    """A book with these sections, by anchor, in the place of its own or at their layer's end."""
    told: list[str] = []
    for height, chapter in enumerate(_CHAPTER.split(book)):
        layer = f"{list(Layer)[height - 1]}-" if height else "none"
        here = {anchor: text for anchor, text in sections.items() if anchor.startswith(layer)}
        told.append(_CHECK.split(chapter)[0].rstrip("\n") + "\n")
        told.extend((by_anchor(chapter) | here).values())
    return "\n".join(told)


def sections(runbook: str, anchors: Iterable[str]) -> tuple[Section, ...]:
    """The sections with these anchors, in the order of the runbook; a site's check has none."""
    wanted = set(anchors)
    return tuple(
        _section(anchor, text) for anchor, text in _parts(runbook).items() if anchor in wanted
    )


def _parts(runbook: str) -> Mapping[str, str]:
    pieces = _ANCHOR.split(runbook)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def _section(anchor: str, text: str) -> Section:
    title, blocks = anchor, []
    for paragraph in re.split(r"\n{2,}", text.partition(_FOUND)[0].strip("\n")):
        if paragraph.startswith("#"):
            title = paragraph.lstrip("# ").replace("`", "")
        elif paragraph.strip():
            blocks.append(_block(paragraph))
    return Section(anchor, title, tuple(blocks))


def _block(paragraph: str) -> Block:
    lines = paragraph.split("\n")
    if all(line.startswith("    ") for line in lines):
        return Block("pre", tuple((Span("code", line[4:]),) for line in lines))
    if lines[0].startswith("- "):
        items = re.split(r"^- ", paragraph, flags=re.MULTILINE)[1:]
        return Block("ul", tuple(_inline(item) for item in items))
    return Block("p", (_inline(paragraph),))


def _inline(text: str) -> Line:
    plain = " ".join(text.split())
    spans: list[Span] = []
    at = 0
    for match in _INLINE.finditer(plain):
        if match.start() > at:
            spans.append(Span("text", plain[at : match.start()]))
        code, strong, link = match.groups()
        style: Style = "strong" if strong else "code" if code else "text"
        spans.append(Span(style, (code or strong or link).replace("`", "")))
        at = match.end()
    if at < len(plain):
        spans.append(Span("text", plain[at:]))
    return tuple(spans)

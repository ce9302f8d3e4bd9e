"""runbook.md: what is in it, and that the file is today's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from commcheck.check import Check, Nothing, passed
from commcheck.discover import discover
from commcheck.model import Cause, Machine, Remedy, Verdict, Words
from commcheck.report.runbook_pages import as_bundled, by_anchor, with_sections
from commcheck.report.words import Lang
from commcheck.runbook import anchor, assemble, bundled, of_site

ROOT = Path(__file__).parents[1]


def judge(_seen: Nothing, _machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    return passed("right")


def check(
    check_id: str, needs: tuple[str, ...] = (), causes: tuple[Cause, ...] = ()
) -> Check[Nothing, Machine, Nothing, Nothing]:
    return Check(
        id=check_id,
        title=Words(f"Title of {check_id}", "标题"),
        subject=Machine,
        seen=Nothing,
        judge=judge,
        needs=needs,
        causes=causes,
    )


def test_the_file_is_fresh() -> None:
    assert (ROOT / "runbook.md").read_text(encoding="utf-8") == bundled(), (
        "python -m commcheck.runbook > runbook.md"
    )


def test_the_chinese_file_is_fresh() -> None:
    assert (ROOT / "runbook.zh.md").read_text(encoding="utf-8") == bundled("zh"), (
        "python -m commcheck.runbook zh > runbook.zh.md"
    )


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_links_lead_somewhere(lang: Lang) -> None:
    text = bundled(lang)
    anchors = re.findall(r'<a id="([^"]+)"></a>', text)
    assert len(anchors) == len(set(anchors))
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= set(anchors)
    assert not re.search(r"\{\w+\}", text)  # a place of a command that nothing filled


def test_layers_climb_and_needs_come_first() -> None:
    text = assemble(
        [
            (check("library.env"), "Library."),
            (check("physical.a", needs=("physical.b",)), "A."),
            (check("physical.b"), "B."),
            (check("physical.reachable"), "R."),
        ]
    )
    assert re.findall(r'<a id="([^"]+)">', text) == [
        "physical-reachable",
        "physical-b",
        "physical-a",
        "library-env",
    ]
    assert re.findall(r"^## .*", text, re.MULTILINE) == [
        "## Layer 1: physical",
        "## Layer 2: library",
    ]
    assert "**Judged after** [`physical.b`](#physical-b)." in text


def test_needs_in_a_circle_keep_nothing_out() -> None:
    text = assemble(
        [(check("physical.a", ("physical.b",)), ""), (check("physical.b", ("physical.a",)), "")]
    )
    assert text.count("### Title") == 2


def test_a_section() -> None:
    remedy = Remedy(
        "ip link set {netdev} up", Words("Sets it up.", "启用。"), Words("None.", "无。")
    )
    asked = Remedy("", Words("Pull the cable.", "拔线。"), Words("Ask.", "询问。"), "network team")
    cause = Cause(
        "link-down", Words("Down", "断开"), Words("No link.", "无链路。"), (remedy, asked)
    )
    doc = "The link is up.\n\nWhy: it must ``be``.\nReads: ``ethtool``.\nBy hand: look."
    assert anchor("physical.link") == "physical-link"
    assert assemble([(check("physical.link", causes=(cause,)), doc)]).partition("<a id")[2] == (
        '="physical-link"></a>\n\n'
        "### Title of physical.link (`physical.link`)\n\n标题\n\n"
        "The link is up.\n\n"
        "**Why.** It must `be`.\n\n**Reads.** `ethtool`.\n\n**By hand.** Look.\n\n"
        "What it can find:\n\n"
        '<a id="link-down"></a>\n\n#### Down (`link-down`)\n\n断开. No link.\n\n'
        "1. `ip link set NETDEV up`: Sets it up. Before: None.\n"
        "2. Pull the cable. Before: Ask. Who: network team.\n"
    )


def test_a_book_is_made_of_its_sections() -> None:
    for lang in ("en", "zh"):
        book = as_bundled(lang)
        assert with_sections(book, {}) == book
        assert {f'<a id="{name}">' for name in by_anchor(book)} <= set(
            re.findall(r'<a id="[^"]+">', book)
        )


SITE = '''"""Ours is right.

Why: it is ours.
Reads: nothing.

## A heading of our own
"""

from commcheck.check import Check, Nothing, passed
from commcheck.model import Machine, Words

CHECK = Check(
    id="{id}",
    title=Words("Ours", "站点"),
    subject=Machine,
    seen=Nothing,
    judge=lambda *_: passed("right"),
)
'''


def test_a_sites_sections_are_its_own_and_no_link_breaks(tmp_path: Path) -> None:
    folder = tmp_path / "checks" / "physical"
    folder.mkdir(parents=True)
    (folder / "our_own.py").write_text(SITE.format(id="physical.our-own"))
    sections = of_site(discover(cwd=tmp_path))
    assert "physical-our-own" in sections
    assert "physical-reachable" not in sections
    assert of_site(discover(cwd=tmp_path / "checks")) == {}
    # A cause that another bundled check links to must be told there now.
    told = by_anchor(as_bundled("en"))
    shared = next(
        (name, other)
        for name, text in told.items()
        for slug in re.findall(r'<a id="([^"]+)"', text)[1:]
        for other, elsewhere in told.items()
        if f"](#{slug})" in elsewhere and name.startswith("physical") and other != name
    )
    name = shared[0].removeprefix("physical-")
    (folder / f"{name.replace('-', '_')}.py").write_text(SITE.format(id=f"physical.{name}"))
    sections = of_site(discover(cwd=tmp_path))
    assert {"physical-our-own", *shared} <= set(sections)
    assert "## A heading of our own" in sections[shared[0]].en
    for lang in ("en", "zh"):
        book = with_sections(
            as_bundled(lang), {key: getattr(words, lang) for key, words in sections.items()}
        )
        anchors = re.findall(r'<a id="([^"]+)"></a>', book)
        assert len(anchors) == len(set(anchors))
        assert set(re.findall(r"\]\(#([^)]+)\)", book)) <= set(anchors)


def test_both_books_have_the_same_sections() -> None:
    """In Chinese each is headed and told in Chinese, and leads to the English background."""
    english, chinese = (re.findall(r'<a id="([^"]+)">', bundled(lang)) for lang in ("en", "zh"))
    assert english == chinese
    for section in re.split(r"^### ", bundled("zh"), flags=re.MULTILINE)[1:]:
        title, _, rest = section.partition("\n")
        assert re.search(r"[\u4e00-\u9fff]", title), title
        assert "(runbook.md#" in rest
    links = set(re.findall(r"\(runbook\.md#([^)]+)\)", bundled("zh")))
    assert links <= set(english)

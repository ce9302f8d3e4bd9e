"""The page in both languages, the runbook's sections in it, and the map."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from commcheck.discover import bundled_folder
from commcheck.model import Layer, Status
from commcheck.report import html
from commcheck.report.changes_text import TITLES
from commcheck.report.fleet import verdicts
from commcheck.report.fleet_map import fleet_map
from commcheck.report.interface import CHINESE, COUNTED, counted, known, t
from commcheck.report.runbook_pages import Section, Span, sections
from commcheck.report.words import EXIT_CODES, MARKS, VERDICTS
from tests.report.runs import PASS, healthy, incident, plan, result, verdict
from tests.report.test_html import large

TEMPLATE = (Path(html.__file__).parent / "templates" / "report.html").read_text("utf-8")
HAN = re.compile(r"[\u4e00-\u9fff]")


def test_every_text_of_the_template_has_chinese() -> None:
    asked = set(re.findall(r'\bt\("((?:[^"\\]|\\.)+)"', TEMPLATE))
    assert len(asked) > 80
    for text in asked:
        assert HAN.search(t(text).zh), text
    nouns = set(re.findall(r'\b(?:number|counted)\(.+?, "([a-z ]+)"', TEMPLATE))
    assert nouns <= set(COUNTED)


def test_every_word_that_a_page_may_show_has_chinese() -> None:
    words = [
        *(mark.word for mark in (*MARKS.values(), *VERDICTS.values())),
        *TITLES.values(),
        *EXIT_CODES.values(),
        *(layer.value for layer in Layer),
        "breaks here", "fails too", "partly judged", "not judged", "not climbed", "not measured",
    ]  # fmt: skip
    for word in words:
        assert HAN.search(known(word).zh), word


def test_no_text_is_left_behind() -> None:
    """A Chinese text that nobody asks for is one whose English was changed."""
    sources = TEMPLATE + "".join(
        path.read_text("utf-8")
        for path in Path(html.__file__).parent.parent.rglob("*.py")
        if path.name != "interface.py"
    )
    for text in CHINESE:
        first = text.removeprefix("the ")[:40]
        assert first in sources or first.partition(",")[0] in sources, text


def test_counts() -> None:
    assert counted(1, "host").en == "1 host"
    assert counted(1912, "host").en == "1,912 hosts"
    assert counted(2, "more remedy", "more remedies").en == "2 more remedies"
    assert counted(2, "host").zh == "2 台主机"
    with pytest.raises(KeyError):
        counted(2, "sheep")


# --- the runbook --------------------------------------------------------------------------------


def test_a_section_is_read_as_it_is_written() -> None:
    text = (
        'Intro\n\n<a id="physical-a"></a>\n\n### A title (`physical.a`)\n\n中文\n\n'
        "**Why.** See `x`\nand [b](#physical-b).\n\n- one `two`\n- three\n  four\n\n"
        '    $ run\n\nWhat it can find:\n\n<a id="a-cause"></a>\n\n#### A cause\n\n1. x\n\n'
        '<a id="physical-b"></a>\n\n### B\n'
    )
    (section,) = sections(text, ["physical-a", "physical-none"])
    assert (section.anchor, section.title) == ("physical-a", "A title (physical.a)")
    kinds = [block.kind for block in section.blocks]
    assert kinds == ["p", "p", "ul", "pre"]
    assert section.blocks[1].lines == (
        (Span("strong", "Why."), Span("text", " See "), Span("code", "x"), Span("text", " and "),
         Span("text", "b"), Span("text", ".")),
    )  # fmt: skip
    assert section.blocks[2].lines[1] == (Span("text", "three four"),)


def test_every_section_of_our_runbook_is_found_whole() -> None:
    text = (bundled_folder("checks").parent / "runbook.md").read_text("utf-8")
    anchors = re.findall(
        r'^<a id="((?:physical|library|runtime|application)-[a-z0-9-]+)"', text, re.M
    )
    found: tuple[Section, ...] = sections(text, anchors)
    assert [section.anchor for section in found] == anchors
    for section in found:
        said = " ".join(
            span.text for block in section.blocks for line in block.lines for span in line
        )
        assert "Why." in said, section.anchor
        assert "What it can find" not in said
        assert "**" not in said, section.anchor


# --- the map ------------------------------------------------------------------------------------


def test_one_bad_host_in_two_thousand_is_seen() -> None:
    record = large(2000, 6, failing=2000)
    drawn = fleet_map(verdicts(record), record.plan.hosts)
    assert drawn is not None
    assert [(len(row.hosts), row.height) for row in drawn.rows] == [(1, 16.0), (1999, 6)]
    assert [label.text for label in drawn.hosts] == ["gpu-0000"]
    (stroke,) = drawn.strokes
    assert stroke.tone == "fail"
    assert drawn.says == "1 host of 2,000 did not pass"
    assert drawn.bands[0].title.startswith("1,999 hosts without a fault")


def test_rows_never_overlap_and_keep_the_order_of_the_inventory() -> None:
    record = incident()
    drawn = fleet_map(verdicts(record), record.plan.hosts)
    assert drawn is not None
    assert [host for row in drawn.rows for host in row.hosts] == list(record.plan.hosts)
    for above, below in zip(drawn.rows, drawn.rows[1:], strict=False):
        assert above.y + above.height == below.y


def test_no_map_where_there_is_nothing_to_see() -> None:
    record = healthy()
    assert fleet_map(verdicts(record), record.plan.hosts) is None


def test_the_map_names_every_layer_though_most_checks_are_of_one() -> None:
    base = healthy(3)
    checks = (
        *(f"physical.check-{n}" for n in range(90)),
        "library.a",
        "runtime.a",
        "application.a",
    )
    results = [result(host, check, PASS) for host in base.plan.hosts for check in checks]
    bad = result(base.plan.hosts[0], "library.a", verdict(Status.FAIL, reason="no"))
    record = replace(base, plan=plan(base.plan.hosts, checks), results=(*results, bad))
    drawn = fleet_map(verdicts(record), record.plan.hosts)
    assert drawn is not None
    assert [each.text for each in drawn.layers] == ["physical", "library", "runtime", "application"]
    assert len({(each.x, each.y) for each in drawn.layers}) == 4
    assert max(each.y for each in drawn.layers) < drawn.top == drawn.rows[0].y
    assert all(each.x + 5 * len(each.text) < 1000 for each in drawn.layers)

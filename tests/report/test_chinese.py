"""The summary on the terminal and as Markdown, in Chinese; and everything that a run may say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from commcheck.diagnose import diagnose
from commcheck.model import Words
from commcheck.report import markdown, text
from commcheck.report.folder import RunFolder
from commcheck.report.record import Record
from commcheck.report.words import padded
from tests.report import hostile
from tests.report.runs import healthy, incident

HAN = re.compile(r"[\u4e00-\u9fff]")
RECORDS = {"incident": incident(), "interrupted": incident("interrupted"), "healthy": healthy()}

# What a host said or measured, ids, commands and names of files are the same in both languages.
ENGLISH = re.compile(r"\b(Layer|layers?|hosts?|exit|cause|remedy|judged|breaks|Report|Read|Why)\b")


@pytest.mark.parametrize("name", RECORDS)
def test_the_last_screen_is_chinese(name: str) -> None:
    *_, last = lines = text.render(RECORDS[name], Path("reports/run"), lang="zh").splitlines()
    ladder = next(place for place, line in enumerate(lines) if line.startswith("物理层"))
    for line in filter(None, lines[ladder:]):
        assert HAN.search(line), line
        assert not ENGLISH.search(line), line
    assert re.search(r"退出码 \d$", last)


def test_the_incident_in_chinese() -> None:
    shown = text.render(incident(), Path("reports/run-1"), lang="zh")
    assert "问题出在物理层：RoCE 优先级未开启 PFC，7 台主机中的 2 台\n" in shown
    assert "先处置：     mlnx_qos -i eth2 --pfc 0,0,0,1,0,0,0,0   在 node-[0002-0003]\n" in shown
    assert "手册：       runbook.zh.md#physical-pfc-enabled\n" in shown
    # The measured reason is evidence, and is not translated.
    assert "RoCE 优先级未开启 PFC：eth2 has PFC on [], want [3]\n" in shown


def test_columns_are_as_wide_as_they_look() -> None:
    assert padded("物理层", 12) == "物理层      "
    assert padded("library", 12) == "library     "
    rungs = text.render(incident(), lang="zh").splitlines()
    columns = {line.index("  ") for line in rungs if line.startswith(("物理层", "应用层"))}
    assert columns == {3}


def test_a_stream_that_shows_no_chinese_gets_english() -> None:
    assert text.render(incident(), unicode=False, lang="zh") == text.render(
        incident(), unicode=False
    )


@pytest.mark.parametrize("record", [*RECORDS.values(), hostile.record()])
def test_both_summaries_have_the_same_shape(record: Record) -> None:
    """The same headings, rows, lists and code, so that neither language leaves something out."""
    english, chinese = (markdown.render(record, lang=lang) for lang in ("en", "zh"))
    kinds = [
        [re.match(r"#+|\||-|  -|```|    |\*\*|$|.", line)[0][:1] for line in each.split("\n")]  # type: ignore[index]
        for each in (english, chinese)
    ]
    assert len(kinds[0]) == len(kinds[1])
    fenced = [re.findall(r"```+text\n(.*?)\n```", each, re.DOTALL) for each in (english, chinese)]
    assert fenced[0] == fenced[1]
    for line in chinese.split("\n"):
        assert not re.match(r"#+ ", line) or HAN.search(line), line


@pytest.mark.parametrize("name", RECORDS)
def test_what_a_diagnosis_says_is_in_both_languages(name: str) -> None:
    found = diagnose(RECORDS[name])
    words: list[Words] = [found.says, *found.says_more, *found.proven]
    for group in found.groups:
        words += [share.words for share in group.shares]
        words += [*group.speaks_for, *group.speaks_against]
    for each in words:
        assert each.en, each
        assert HAN.search(each.zh), each


def test_a_chinese_run_carries_its_runbook(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, incident().info.run_id)
    folder.render(incident(), lang="zh")
    assert "runbook.zh.md#physical-pfc-enabled" in (folder.path / "summary.md").read_text("utf-8")
    assert (folder.path / "runbook.zh.md").read_text("utf-8").startswith("# 处置手册")
    (junit,) = (folder.path / "junit").glob("*physical*.xml")
    assert not HAN.search(junit.read_text("utf-8"))  # machine formats stay English

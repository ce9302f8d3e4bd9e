"""Reports of NCCL's RAS service: both forms, and what several of one job tell."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError, UsageError
from commcheck.model import Kind, Status
from commcheck.nccl import ras_rules
from commcheck.nccl.offline_hang import analyse_hang
from commcheck.nccl.ras import Proc, Report, parse, parse_text
from commcheck.nccl.ras_rules import Poll, judge

RECORDED = Path(__file__).parents[1] / "recorded" / "nccl-ras"


def report(name: str) -> Report:
    return parse_text((RECORDED / name).read_text())


def document(count: int = 4118, **of_last: Any) -> dict[str, Any]:
    fine = {"init_state": 0, "async_error": 0}
    ranks: list[dict[str, Any]] = [
        {
            "rank": rank,
            "host": "192.0.2.11",
            "pid": 4100 + rank,
            "cuda_dev": rank,
            "nvml_dev": rank,
            "status": fine,
            "collective_counts": {"AllReduce": count},
        }
        for rank in range(4)
    ]
    ranks[-1] |= of_last
    comm = {"hash": "0xab", "size": 4, "ranks": ranks, "missing_ranks": []}
    return {"nccl_version": "2.28.9", "communicators": [comm], "ras": {}}


def polls(*reports: Report | dict[str, Any], every_s: float = 30.0) -> list[Poll]:
    return [
        Poll(each if isinstance(each, Report) else parse_text(json.dumps(each)), n * every_s)
        for n, each in enumerate(reports)
    ]


BEHIND: dict[str, Any] = {"collective_counts": {"AllReduce": 4117}}

# reports in their order, seconds between them, rule, status or kind
TABLE = [
    (["ras-status-healthy-2.28.9.txt"], 30, "RAS-011", Kind.UNDECIDABLE),
    (["ras-status-incomplete-2.28.9.txt"], 30, "RAS-003", Kind.UNDECIDABLE),
    (["ras-status-incomplete-2.28.9.txt", "ras-status-dead-2.28.9.txt"], 30, "RAS-002", "fail"),
    (["ras-status-incomplete-2.28.9.txt"] * 2, 30, "RAS-003", "fail"),
    (["ras-status-incomplete-2.28.9.txt"] * 2, 5, "RAS-003", Kind.UNDECIDABLE),
    (["ras-stuck-poll0-2.28.9.txt"], 30, "RAS-005", Kind.UNDECIDABLE),
    ([f"ras-stuck-poll{n}-2.28.9.txt" for n in range(3)], 30, "RAS-005", "fail"),
    ([f"ras-stuck-poll{n}-2.28.9.txt" for n in range(3)], 10, "RAS-005", Kind.UNDECIDABLE),
    ([f"ras-moving-poll{n}-2.28.9.txt" for n in range(2)], 30, "RAS-011", "pass"),
    (["ras-2.29.7.json"], 30, "RAS-004", "fail"),
    ([document(1), document(2)], 2, "RAS-011", "pass"),
    ([document(1), document(1)], 2, "RAS-011", Kind.UNDECIDABLE),
    ([document(1), document(1)], 60, "RAS-007", "warn"),
    ([document(**BEHIND)] * 3, 30, "RAS-005", "fail"),
    ([document(), document(4120, **BEHIND)], 30, "RAS-011", "pass"),
]


@pytest.mark.parametrize(("given_", "every_s", "rule", "want"), TABLE)
def test_reports_of_one_job(given_: list[Any], every_s: float, rule: str, want: str) -> None:
    told = [report(each) if isinstance(each, str) else each for each in given_]
    found = {verdict.rule: verdict for verdict in judge(polls(*told, every_s=every_s))}
    assert want in (found[rule].status.value, found[rule].kind)


def test_names_of_who_is_wrong() -> None:
    (dead,) = judge(
        polls(report("ras-status-incomplete-2.28.9.txt"), report("ras-status-dead-2.28.9.txt"))
    )
    assert dead.reason == "process 4905 on 192.0.2.12 (GPU 5), rank 13 is dead"
    assert dead.hosts == ("192.0.2.12",)
    stuck = [report(f"ras-stuck-poll{n}-2.28.9.txt") for n in range(3)]
    (behind,) = judge(polls(*stuck))
    assert behind.measured["ranks_behind"] == [13]
    assert behind.remedies[0].command == "py-spy dump --pid 4905"
    error, silent = judge(polls(report("ras-2.29.7.json")))
    assert "rank 1 (process 4101 on 192.0.2.11 (GPU 1))" in error.reason
    assert "remote error" in error.reason
    assert (silent.rule, silent.kind) == ("RAS-003", Kind.UNDECIDABLE)


def test_states_slow_answers_and_missing_ranks() -> None:
    healthy = report("ras-status-healthy-2.28.9.txt")
    odd = replace(healthy, statuses=(("RUNNING,INIT", "OK"),))
    assert judge(polls(odd))[0].kind is Kind.UNDECIDABLE
    (late,) = judge(polls(odd, odd, every_s=150))
    assert (late.rule, late.status) == ("RAS-006", Status.FAIL)
    (slow,) = judge(polls(replace(healthy, seconds=11.0)))
    assert (slow.rule, slow.status) == ("RAS-008", Status.WARN)
    (few,) = judge(polls(healthy), world=32)
    assert (few.rule, few.kind) == ("RAS-009", Kind.UNDECIDABLE)
    assert judge(polls(healthy), world=16)[0].rule == "RAS-011"


HEALTHY = replace(report("ras-status-healthy-2.28.9.txt"), statuses=())
ODD = replace(HEALTHY, statuses=(("RUNNING,INIT", "OK"),))
ALWAYS_LATE = replace(HEALTHY, timeouts=2)

# Beside the table: the same for rules that no recording shows.
ROWS = [
    ([ODD, ODD], 150, "RAS-006", "fail"),
    ([ODD], 30, "RAS-006", Kind.UNDECIDABLE),
    ([ALWAYS_LATE, ALWAYS_LATE], 30, "RAS-008", "warn"),
    ([ALWAYS_LATE], 30, "RAS-011", Kind.UNDECIDABLE),
]


@pytest.mark.parametrize(("given_", "every_s", "rule", "want"), ROWS)
def test_reports_that_no_recording_shows(
    given_: list[Report], every_s: float, rule: str, want: str
) -> None:
    found = {verdict.rule: verdict for verdict in judge(polls(*given_, every_s=every_s))}
    assert want in (found[rule].status.value, found[rule].kind)


def test_every_rule_has_a_case_and_a_healthy_job_has_none_of_them() -> None:
    """That nobody answers, RAS-001, is the case in which none of them can tell."""
    source = Path(ras_rules.__file__).read_text()
    rules = set(re.findall(r'rule="(RAS-\d{3})"', source))
    tried = {rule for _, _, rule, want in (*TABLE, *ROWS) if want != "pass"}
    assert rules - {"RAS-009"} == tried
    assert {v.rule for v in judge(polls(HEALTHY), world=32)} == {"RAS-009"}
    moving = judge(polls(document(1), document(2)), world=4)
    assert [(v.rule, v.status) for v in moving] == [("RAS-011", Status.PASS)]


def test_the_facts_of_a_text() -> None:
    read = report("ras-status-dead-2.28.9.txt")
    assert (read.version, read.gpus) == ("2.28.9", 16)
    assert read.dead == (Proc("192.0.2.12", 4905, "5"),)
    assert read.comms[0].id == "5f3a9c0d7b21e464"
    assert report("ras-status-incomplete-2.28.9.txt").timeouts == 2
    assert report("ras-2.29.7.json").comms[0].size == 8


def test_what_the_service_answers_to_curl() -> None:
    text = (RECORDED / "ras-2.29.7.json").read_text()
    assert parse(Output(f"OK\n{text}")).version == "2.29.7"
    old = (RECORDED / "ras-status-healthy-2.28.9.txt").read_text()
    assert parse(Output(f"ERROR: Unknown command 'set format json'\n{old}")).gpus == 16
    with pytest.raises(CommandFailed, match="nothing listens"):
        parse(Output("", "", 7))


def test_offline_in_the_order_of_their_times(tmp_path: Path) -> None:
    for n in (2, 0, 1):
        path = tmp_path / f"report-{9 - n}.txt"
        path.write_text((RECORDED / f"ras-stuck-poll{n}-2.28.9.txt").read_text())
        os.utime(path, (1000 + 30 * n, 1000 + 30 * n))
    (result,) = analyse_hang([str(tmp_path)]).results
    assert (result.check, result.status) == ("library.ras", Status.FAIL)


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDED.glob("ras-*")))
def test_a_report_that_was_cut_is_refused(name: str) -> None:
    text = (RECORDED / name).read_text()
    end = len(text) - 20 if name.endswith(".json") else text.index("Warnings\n===")
    for cut in range(0, end, 37):
        with pytest.raises(ParseError):
            parse_text(text[:cut])


def test_what_the_table_says_must_be_told() -> None:
    text = (RECORDED / "ras-stuck-poll0-2.28.9.txt").read_text()
    with pytest.raises(ParseError):
        parse_text(text[: text.index("#0-0")])


@settings(max_examples=40)
@given(st.sampled_from(sorted(RECORDED.glob("ras-*"))), st.integers(0, 3000), st.text(max_size=30))
def test_damaged_reports_are_refused_or_read(path: Path, at: int, junk: str) -> None:
    text = path.read_text()
    try:
        assert judge([Poll(parse_text(text[:at] + junk + text[at:]), 0.0)])
    except ParseError as error:
        assert error.reason


@pytest.mark.parametrize("name", ["ras-status-healthy-2.28.9.txt", "ras-2.29.7.json"])
def test_a_report_with_a_number_that_none_can_hold_is_refused(name: str) -> None:
    text = (RECORDED / name).read_text()
    numbers = list(re.finditer(r"\b\d+\b", text))
    refused = 0
    for number in numbers[:200]:
        try:
            parse_text(text[: number.start()] + "9" * 5000 + text[number.end() :])
        except ParseError:
            refused += 1
    assert refused


def test_a_time_that_is_none_is_that_of_the_file(tmp_path: Path) -> None:
    text = (RECORDED / "ras-2.29.7.json").read_text()
    path = tmp_path / "one.json"
    path.write_text(re.sub(r'("timestamp": ")[^"]*', r"\g<1>2026-13-99 25:61:61", text))
    assert "2026-13" in path.read_text()
    assert analyse_hang([str(path)]).results


def test_neither_report_nor_dump(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("hello")
    with pytest.raises(UsageError, match="no dump"):
        analyse_hang([str(tmp_path / "x.txt")])

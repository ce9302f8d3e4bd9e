"""Waivers: what they turn a fail into, for how long, and what is said of idle ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commcheck.conclusions import exit_code
from commcheck.consequences import is_proven
from commcheck.errors import PlaybookError, Position
from commcheck.inventory.declared import Notes
from commcheck.model import (
    Cause,
    Finding,
    Kind,
    Remedy,
    Result,
    Status,
    Verdict,
    Words,
    gates,
)
from commcheck.prepare import Choice, Prepared, prepare
from commcheck.waivers import Granted, Waiver, apply, warn_of_unused, warn_of_void

LAST = date(2026, 12, 15)
WORDS = Words("old firmware", "固件过旧")
REMEDY = Remedy("mlxfwmanager", WORDS, WORDS)
CAUSE = Cause("old-firmware", WORDS, WORDS, (REMEDY,))
FAIL = Verdict(
    status=Status.FAIL,
    reason="firmware 28.36, wanted 28.39",
    cause=CAUSE,
    remedies=(REMEDY,),
    measured={"firmware_version": "28.36"},
)
PASS = Verdict(status=Status.PASS, reason="firmware 28.39")
CHECK = "physical.nic-firmware"


def granted(
    *, check: str = CHECK, hosts: tuple[str, ...] = ("gpu-01",), owner: str = "fabric team"
) -> Granted:
    waiver = Waiver(check, "old", LAST, "RMA, vendor ticket", owner, Position("w.yaml", 2, 5))
    return Granted(waiver, frozenset(hosts))


def result(verdict: Verdict, host: str = "gpu-01", check: str = CHECK) -> Result:
    finding = Finding(check=check, host=host, subject="", verdict=verdict)
    return Result(check=check, host=host, findings=(finding,))


def idle(each: Granted, *results: Result, today: date = LAST) -> list[str]:
    notes = Notes()
    warn_of_unused([each], results, notes, today)
    return [problem.line("warning") for problem in notes.warnings]


def test_a_waived_fail_is_a_skip_that_says_what_it_was() -> None:
    verdict = apply(FAIL, CHECK, "gpu-01", [granted()], LAST)
    assert (verdict.status, verdict.kind) == (Status.SKIP, Kind.WAIVED)
    assert verdict.reason == (
        "waived until 2026-12-15: RMA, vendor ticket (fabric team) "
        "(was: fail, firmware 28.36, wanted 28.39)"
    )
    assert (verdict.cause, verdict.remedies, verdict.measured) == (
        CAUSE,
        (REMEDY,),
        {"firmware_version": "28.36"},
    )
    assert not gates(result(verdict))
    assert exit_code([result(verdict)]) == 0


def test_a_waived_warning_counts_no_more_and_brings_nothing_with_it() -> None:
    warning = replace(FAIL, status=Status.WARN)
    verdict = apply(warning, CHECK, "gpu-01", [granted()], LAST)
    assert (verdict.status, verdict.kind) == (Status.SKIP, Kind.WAIVED)
    assert verdict.reason.endswith("(was: warn, firmware 28.36, wanted 28.39)")
    assert exit_code([result(warning)], strict=True) == 1
    assert exit_code([result(verdict)], strict=True) == 0
    assert idle(granted(), result(verdict)) == []
    # A waived fail explains others, and they are waived with it; a warning never did.
    assert is_proven(apply(FAIL, CHECK, "gpu-01", [granted()], LAST))
    assert not is_proven(verdict)


def test_without_an_owner() -> None:
    verdict = apply(FAIL, CHECK, "gpu-01", [granted(owner="")], LAST)
    assert "RMA, vendor ticket (was: fail" in verdict.reason


@pytest.mark.parametrize(
    ("check", "host", "waived"),
    [
        (CHECK, "gpu-01", True),
        (CHECK, "gpu-02", False),
        ("physical.nic-mtu", "gpu-01", False),
    ],
)
def test_only_the_check_and_hosts_that_are_meant(check: str, host: str, waived: bool) -> None:
    verdict = apply(FAIL, check, host, [granted()], LAST)
    assert (verdict is not FAIL) is waived


def test_what_is_found_of_a_group_is_waived_where_all_its_hosts_are_meant() -> None:
    group = replace(FAIL, hosts=("gpu-01", "gpu-02"))
    both = granted(hosts=("gpu-01", "gpu-02", "gpu-03"))
    verdict = apply(group, CHECK, "@gpu", [both], LAST)
    assert verdict.kind is Kind.WAIVED
    assert apply(group, CHECK, "@gpu", [granted()], LAST) is group
    assert apply(FAIL, CHECK, "@gpu", [both], LAST) is FAIL  # it names nobody
    of_group = Result(
        check=CHECK,
        host="@gpu",
        findings=(Finding(check=CHECK, host="@gpu", subject="", verdict=verdict),),
    )
    assert idle(both, of_group, result(PASS)) == []


def test_a_whole_layer() -> None:
    layer = [granted(check="physical.*")]
    assert apply(FAIL, "physical.nic-mtu", "gpu-01", layer, LAST).kind is Kind.WAIVED
    assert apply(FAIL, "library.env", "gpu-01", layer, LAST) is FAIL


@given(st.integers(-400, 400))
def test_it_holds_through_its_last_day(days: int) -> None:
    today = LAST + timedelta(days)
    is_waived = apply(FAIL, CHECK, "gpu-01", [granted()], today).kind is Kind.WAIVED
    assert is_waived == (days <= 0)
    notes = Notes()
    warn_of_void([granted().waiver], notes, today)
    assert bool(notes.warnings) == (days > 0)


@pytest.mark.parametrize(
    "verdict",
    [
        PASS,
        Verdict(
            status=Status.ERROR, kind=Kind.CHECK, reason="tool missing", error="CommandMissing"
        ),
        Verdict(status=Status.ERROR, kind=Kind.HOST, reason="unreachable", error="Unreachable"),
        Verdict(status=Status.SKIP, kind=Kind.UNDECIDABLE, reason="cannot tell"),
    ],
    ids=lambda verdict: f"{verdict.status}-{verdict.kind}",
)
def test_what_is_not_known_is_not_waived(verdict: Verdict) -> None:
    assert apply(verdict, CHECK, "gpu-01", [granted()], LAST) is verdict


def test_a_void_waiver_is_told_with_its_place() -> None:
    notes = Notes()
    warn_of_void([granted().waiver], notes, LAST + timedelta(1))
    assert [problem.line("warning") for problem in notes.warnings] == [
        "w.yaml:2:5: warning: the waiver of physical.nic-firmware on old is void, its last day was "
        "2026-12-15; mend the fault, or give it a new date [void-waiver]"
    ]


def test_idle_waivers() -> None:
    waived = apply(FAIL, CHECK, "gpu-01", [granted()], LAST)
    assert idle(granted(), result(waived)) == []
    begin = "w.yaml:2:5: warning: the waiver of physical.nic-firmware on old waived nothing: "
    assert idle(granted(), result(PASS)) == [
        begin + "no fault of it there in this run [unused-waiver]"
    ]
    no_check = begin + "no such check on such a host in this run [unused-waiver]"
    assert idle(granted(), result(PASS, check="physical.nic-mtu")) == [no_check]
    assert idle(granted(hosts=()), result(PASS)) == [no_check]


def test_a_waiver_of_hosts_that_were_left_out_or_void_is_not_called_idle() -> None:
    assert idle(granted(), result(PASS, host="gpu-02")) == []
    assert idle(granted(), result(FAIL), today=LAST + timedelta(1)) == []


# --- hosts that are gone ------------------------------------------------------------------------


def prepared(tmp_path: Path, hosts: str) -> Prepared:
    (tmp_path / "w.yaml").write_text(
        "waivers:\n"
        f"  - {{check: {CHECK}, hosts: '{hosts}', until: 2099-12-31, reason: it is on its way}}\n"
    )
    choice = Choice(inventory=("gpu-01,gpu-02,",), waivers=(tmp_path / "w.yaml",))
    return prepare(choice, cwd=tmp_path)


@pytest.mark.parametrize(
    ("hosts", "left"),
    [
        ("gpu-99", ()),
        ("gpu-01,gpu-99", ("gpu-01",)),
        ("gpus", ()),
        ("all:!lab", ()),  # nobody knows whom it meant to leave out
        ("all:&lab", ()),
    ],
)
def test_a_host_that_is_gone_is_a_warning_with_its_place(
    hosts: str, left: tuple[str, ...], tmp_path: Path
) -> None:
    made = prepared(tmp_path, hosts)
    (told,) = [each for each in made.warnings if "w.yaml" in each]
    assert told.startswith(f"{tmp_path}/w.yaml:2:5: warning: hosts of the waiver of {CHECK}: ")
    assert "there is no host and no group" in told
    assert [sorted(each.hosts) for each in made.granted] == [sorted(left)]


def test_a_pattern_that_is_none_is_an_error_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(PlaybookError, match=r"w\.yaml:2:5: error: hosts of .*regular"):
        prepared(tmp_path, "~(")


def test_an_unknown_group_of_a_play_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(
        f"name: p\nplays:\n  - {{layer: physical, hosts: gpus, checks: [{CHECK}]}}\n"
    )
    choice = Choice(inventory=("gpu-01,",), playbook=tmp_path / "p.yaml")
    with pytest.raises(PlaybookError, match=r"p\.yaml:3:5: error: hosts of play 'physical': there"):
        prepare(choice, cwd=tmp_path)

"""physical.npu-pfc-storm"""

from __future__ import annotations

from typing import Any

from checks.physical.npu_pfc_storm import CHECK, NAMES, STORM, Seen, judge
from commcheck.check import Nothing
from commcheck.model import Kind, Status, Verdict
from tests.checks.physical.npu_answers import LIMITS, NPU, ONE, counted, told


def of(last: dict[str, int], added: dict[str, int] | None = None) -> Verdict:
    verdict = judge(Seen(counted(last, added or {})), NPU, Nothing(), LIMITS)
    assert isinstance(verdict, Verdict)
    return verdict


def test_never_counted() -> None:
    assert of(dict.fromkeys(NAMES, 0)).status is Status.PASS


def test_growth_fails() -> None:
    verdict = of({NAMES[4]: 2}, {NAMES[4]: 1})
    assert (verdict.status, verdict.cause) == (Status.FAIL, STORM)


def test_old_totals_warn(judged: Any) -> None:
    answers = {"hccn_tool -i N -pfc_stat": told("pfc-stat")}
    verdict = judged(CHECK, answers, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, STORM)
    assert "tx_pfc4_duration_err_cnt 2; none in this visit" in verdict.reason


def test_no_such_counters() -> None:
    assert of({"tx_pfc0_duration_time": 0}).kind is Kind.UNDECIDABLE


def test_unreadable(judged: Any) -> None:
    answers = {"hccn_tool -i N -pfc_stat": told("tx_pfc0: none")}
    assert judged(CHECK, answers, machine=ONE).verdict.status is Status.ERROR

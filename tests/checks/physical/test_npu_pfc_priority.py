"""physical.npu-pfc-priority"""

from __future__ import annotations

from typing import Any

from checks.physical.npu_pfc_priority import CHECK, NAMES, OTHER, Seen, Want, judge
from commcheck.check import Nothing
from commcheck.model import Kind, Origin, Status, Verdict, Wanted
from tests.checks.physical.npu_answers import NPU, ONE, counted, told

WANT = Want(Wanted(4, Origin("default")))
ZERO = dict.fromkeys(NAMES, 0)


def of(last: dict[str, int], added: dict[str, int] | None = None) -> Verdict:
    verdict = judge(Seen(counted(last, added or {})), NPU, WANT, Nothing())
    assert isinstance(verdict, Verdict)
    return verdict


def test_healthy(judged: Any) -> None:
    answers = {"hccn_tool -i N -stat": told("stat-good")}
    assert judged(CHECK, answers, machine=ONE).verdict.status is Status.PASS
    assert of(ZERO).status is Status.PASS


def test_growth_on_another_priority_fails() -> None:
    verdict = of({**ZERO, "mac_rx_pfc_pri3_pkt_num": 9}, {"mac_rx_pfc_pri3_pkt_num": 2})
    assert (verdict.status, verdict.cause) == (Status.FAIL, OTHER)
    assert "mac_rx_pfc_pri3_pkt_num +2" in verdict.reason


def test_old_totals_of_another_alone_warn(judged: Any) -> None:
    answers = {"hccn_tool -i N -stat": told("stat-pfc-wrong-prio")}
    verdict = judged(CHECK, answers, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, OTHER)
    both = {**ZERO, "mac_rx_pfc_pri3_pkt_num": 9, "mac_rx_pfc_pri4_pkt_num": 5}
    assert of(both).status is Status.PASS


def test_no_such_counters() -> None:
    assert of({"mac_rx_bad_pkt_num": 0}).kind is Kind.UNDECIDABLE


def test_unreadable(judged: Any) -> None:
    answers = {"hccn_tool -i N -stat": told("packet statistics:\nmac: many")}
    assert judged(CHECK, answers, machine=ONE).verdict.status is Status.ERROR

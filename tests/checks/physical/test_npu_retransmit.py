"""physical.npu-retransmit"""

from __future__ import annotations

from typing import Any

from checks.physical.npu_retransmit import CHECK, LOSS, NAMES, Seen, judge
from commcheck.check import Nothing
from commcheck.model import Kind, Status, Verdict
from tests.checks.physical.npu_answers import LIMITS, NPU, ONE, counted, told


def of(last: dict[str, int], added: dict[str, int] | None = None) -> Verdict:
    verdict = judge(Seen(counted(last, added or {})), NPU, Nothing(), LIMITS)
    assert isinstance(verdict, Verdict)
    return verdict


def test_never_counted(judged: Any) -> None:
    for name in ("stat-good", "stat-old-910a"):
        answers = {"hccn_tool -i N -stat": told(name)}
        assert judged(CHECK, answers, machine=ONE).verdict.status is Status.PASS


def test_growth_fails() -> None:
    verdict = of(dict.fromkeys(NAMES, 5), {"roce_new_pkt_rty_num": 3})
    assert (verdict.status, verdict.cause) == (Status.FAIL, LOSS)
    assert verdict.remedies[0].command == "hccn_tool -i 0 -stat -g"


def test_answers_that_nothing_waits_for_warn() -> None:
    verdict = of(dict.fromkeys(NAMES, 5), {"roce_unexpected_ack_num": 3})
    assert (verdict.status, verdict.cause) == (Status.WARN, LOSS)
    both = of(dict.fromkeys(NAMES, 5), dict.fromkeys(NAMES, 2))
    assert both.status is Status.FAIL


def test_old_totals_need_a_window(judged: Any) -> None:
    answers = {"hccn_tool -i N -stat": told("stat-retransmit")}
    assert judged(CHECK, answers, machine=ONE).verdict.kind is Kind.UNDECIDABLE
    assert of(dict.fromkeys(NAMES, 5)).status is Status.PASS


def test_no_such_counters() -> None:
    assert of({"mac_rx_bad_pkt_num": 0}).kind is Kind.UNDECIDABLE


def test_unreadable(judged: Any) -> None:
    answers = {"hccn_tool -i N -stat": told("packet statistics:")}
    assert judged(CHECK, answers, machine=ONE).verdict.status is Status.ERROR

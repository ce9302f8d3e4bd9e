"""physical.npu-bad-packets"""

from __future__ import annotations

from typing import Any

from checks.physical.npu_bad_packets import CHECK, DAMAGED, WRONG_CONTENT, Seen, judge
from commcheck.check import Nothing
from commcheck.model import Kind, Status, Verdict
from tests.checks.physical.npu_answers import LIMITS, NPU, ONE, counted, told


def of(last: dict[str, int], added: dict[str, int] | None = None) -> Verdict:
    verdict = judge(Seen(counted(last, added or {})), NPU, Nothing(), LIMITS)
    assert isinstance(verdict, Verdict)
    return verdict


def test_never_counted_and_old_releases(judged: Any) -> None:
    for name in ("stat-good", "stat-old-910a"):
        answers = {"hccn_tool -i N -stat": told(name)}
        assert judged(CHECK, answers, machine=ONE).verdict.status is Status.PASS


def test_growth_fails() -> None:
    verdict = of({"mac_rx_fcs_err_pkt_num": 77}, {"mac_rx_fcs_err_pkt_num": 7})
    assert (verdict.status, verdict.cause) == (Status.FAIL, DAMAGED)
    assert "mac_rx_fcs_err_pkt_num +7 in 10 s" in verdict.reason


def test_wrong_content_warns() -> None:
    last = {"mac_rx_fcs_err_pkt_num": 77, "roce_verification_err_num": 9}
    verdict = of(last, {"roce_verification_err_num": 4})
    assert (verdict.status, verdict.cause) == (Status.WARN, WRONG_CONTENT)
    assert "roce_verification_err_num +4 in 10 s" in verdict.reason
    both = of(last, {"roce_verification_err_num": 4, "mac_rx_fcs_err_pkt_num": 7})
    assert (both.status, both.cause) == (Status.FAIL, DAMAGED)
    assert of(last).status is Status.PASS


def test_no_such_counters() -> None:
    assert of({"roce_cqe_num": 0}).kind is Kind.UNDECIDABLE


def test_an_npu_that_was_not_read(judged: Any) -> None:
    answers = {"hccn_tool -i N -stat": told("exec-failed")}
    verdict = judged(CHECK, answers, machine=ONE).verdict
    assert verdict.status is Status.ERROR
    assert "Command execute failed!" in verdict.reason

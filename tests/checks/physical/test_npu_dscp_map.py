"""physical.npu-dscp-map"""

from __future__ import annotations

from typing import Any

from checks.physical.npu_dscp_map import CHECK, MIXED
from commcheck.model import Kind, Status
from tests.checks.physical.npu_answers import ONE, TWO, told


def said(*names: str) -> dict[str, tuple[str, int]]:
    return {"hccn_tool -i N -dscp_to_tc": told(*names)}


def test_alike_on_the_host_is_left_to_the_peers(judged: Any) -> None:
    answers = said("dscp-to-tc-all", "dscp-to-tc-33")
    verdict = judged(CHECK, answers, machine=TWO).verdict
    assert verdict.measured["class"] == 1


def test_mixed(judged: Any) -> None:
    verdict = judged(
        CHECK, said("dscp-to-tc-all", "dscp      tc\n  33       0"), machine=TWO
    ).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, MIXED)
    assert "TC 1 on npu0, TC 0 on npu1" in verdict.reason


def test_another_mark_that_has_no_row(judged: Any) -> None:
    verdict = judged(CHECK, said("dscp-to-tc-33"), machine=ONE, roce_dscp=26).verdict
    assert verdict.kind is Kind.UNDECIDABLE


def test_unreadable(judged: Any) -> None:
    assert judged(CHECK, said("dscp tc\n99 1"), machine=ONE).verdict.status is Status.ERROR

"""physical.npu-speed"""

from __future__ import annotations

from typing import Any

from checks.physical.npu_speed import CHECK, SLOW
from commcheck.model import Kind, Status
from tests.checks.physical.npu_answers import ONE, TWO, told


def said(*names: str) -> dict[str, tuple[str, int]]:
    return {"hccn_tool -i N -speed": told(*names)}


def test_declared(judged: Any) -> None:
    verdict = judged(CHECK, said("speed-200g"), machine=ONE, line_rate_gbits=200).verdict
    assert verdict.status is Status.PASS
    verdict = judged(CHECK, said("speed-100g"), machine=ONE, line_rate_gbits=200).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, SLOW)
    assert "runs at 100 Gb/s, want 200" in verdict.reason
    assert judged(CHECK, said("speed-100g"), machine=ONE, line_rate_gbits=100).verdict.cause is None


def test_undeclared_is_compared_with_the_fastest_of_the_host(judged: Any) -> None:
    assert judged(CHECK, said("speed-100g", "speed-100g"), machine=TWO).verdict.cause is None
    finding = judged(CHECK, said("speed-200g", "speed-100g"), machine=TWO)
    assert (finding.subject, finding.verdict.cause) == ("npu1", SLOW)


def test_a_link_that_is_down_tells_none(judged: Any) -> None:
    verdict = judged(CHECK, said("speed-unknown"), machine=ONE).verdict
    assert verdict.kind is Kind.UNDECIDABLE


def test_unreadable(judged: Any) -> None:
    assert judged(CHECK, said("Speed: fast"), machine=ONE).verdict.status is Status.ERROR

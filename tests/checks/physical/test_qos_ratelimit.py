"""physical.qos-ratelimit"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checks.physical.qos_ratelimit import CHECK, LIMITED, SMALL_SHARE
from commcheck.model import Kind, Machine, Rail, Status

RECORDED = Path(__file__).parents[2] / "recorded" / "mlnx_qos"


def said(text: str) -> dict[str, tuple[str, int]]:
    return {"mlnx_qos": (text, 0)}


@pytest.mark.parametrize("name", ["good-dscp-prio3.txt", "unsorted-tcs.txt"])
def test_free(judged: Any, name: str) -> None:
    assert judged(CHECK, said(f"mlnx_qos/{name}")).verdict.status is Status.PASS


def test_a_limit_below_the_port(judged: Any) -> None:
    verdict = judged(CHECK, said("mlnx_qos/rate-limited.txt"), line_rate_gbits=400).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, LIMITED)
    assert "limited to 100.0 Gb/s" in verdict.reason
    assert verdict.remedies[0].command == "mlnx_qos -i ens1np0 -r 0,0,0,0,0,0,0,0"


def test_a_limit_at_the_line_rate_holds_nothing_back(judged: Any) -> None:
    text = (RECORDED / "rate-limited.txt").read_text().replace("bw: 5%", "bw: 60%")
    text = text.replace("bw: 95%", "bw: 40%")
    verdict = judged(CHECK, said(text), line_rate_gbits=100).verdict
    assert verdict.status is Status.PASS
    # Without a declared rate the port's own counts.
    answers = said(text) | {"grep -rHsxv": ("sysfs/port-roce-400g.txt", 0)}
    assert judged(CHECK, answers).verdict.cause is LIMITED


def test_a_small_share(judged: Any) -> None:
    text = (RECORDED / "rate-limited.txt").read_text().replace("100.0 Gbps", "unlimited")
    verdict = judged(CHECK, said(text)).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, SMALL_SHARE)
    assert "share 5 %, want 50 %" in verdict.reason
    lower = judged(CHECK, said(text), thresholds={"share_percent": 5}).verdict
    assert lower.status is Status.PASS


def test_unknown_is_undecided(judged: Any) -> None:
    assert judged(CHECK).verdict.kind is Kind.UNDECIDABLE
    text = "Rate limit is not supported on your system!\n"
    text += (RECORDED / "good-dscp-prio3.txt").read_text()
    assert judged(CHECK, said(text)).verdict.kind is Kind.UNDECIDABLE


def test_other_vendors_are_not_judged(judged: Any, rail: Rail) -> None:
    machine = Machine("gpu-01", "gpu-roce", rails=(replace(rail, driver="bnxt_en"),))
    assert judged(CHECK, machine=machine).verdict.kind is Kind.NOT_APPLICABLE

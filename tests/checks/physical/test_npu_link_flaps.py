"""physical.npu-link-flaps"""

from __future__ import annotations

from typing import Any

from checks.physical.npu_link_flaps import CHECK, FLAPS, Limits, Seen, judge
from commcheck.check import Nothing
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_history import LinkHistory
from commcheck.model import Status, Verdict
from tests.checks.physical.npu_answers import NPU, ONE, told


def of(*changes: tuple[int, str]) -> Verdict:
    seen = Seen(PerNpu(((0, LinkHistory(len(changes), changes)),)))
    verdict = judge(seen, NPU, Nothing(), Limits())
    assert isinstance(verdict, Verdict)
    return verdict


def test_recorded(judged: Any) -> None:
    answers = {"hccn_tool -i N -link_stat": told("link-stat-stable")}
    assert judged(CHECK, answers, machine=ONE).verdict.status is Status.PASS
    answers = {"hccn_tool -i N -link_stat": told("link-stat")}
    verdict = judged(CHECK, answers, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, FLAPS)
    assert "down 2 times in 24 h, last 10 min ago" in verdict.reason


def test_once_warns_and_long_ago_passes() -> None:
    assert of((50, "UP"), (60, "DOWN")).status is Status.WARN
    assert of((90_000, "UP"), (90_001, "DOWN"), (90_100, "DOWN")).status is Status.PASS


def test_unreadable(judged: Any) -> None:
    answers = {"hccn_tool -i N -link_stat": told("[device 0]current time : now")}
    assert judged(CHECK, answers, machine=ONE).verdict.status is Status.ERROR

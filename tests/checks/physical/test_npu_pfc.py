"""physical.npu-pfc"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.npu_pfc import CHECK, OFF, OTHER
from commcheck.model import Cause, Kind, Status
from tests.checks.physical.npu_answers import ONE, told


def said(name: str) -> dict[str, tuple[str, int]]:
    return {"hccn_tool -i N -pfc": told(name)}


@pytest.mark.parametrize(
    ("name", "cause", "reason"),
    [
        ("pfc-prio4-good", None, "npu0 has PFC on 4"),
        ("pfc-prio3", OTHER, "npu0 has PFC on 3, want it on 4"),
        ("pfc-off", OFF, "npu0 has PFC off, want it on 4"),
        ("pfc-bonded-new", OFF, "npu0 port eth1 has PFC off, want it on 4"),
    ],
)
def test_each(judged: Any, name: str, cause: Cause | None, reason: str) -> None:
    verdict = judged(CHECK, said(name), machine=ONE).verdict
    assert (verdict.cause, verdict.reason) == (cause, reason)
    assert verdict.status is (Status.FAIL if cause else Status.PASS)


def test_the_remedy_keeps_what_is_on(judged: Any) -> None:
    verdict = judged(CHECK, said("pfc-prio3"), machine=ONE).verdict
    assert verdict.remedies[0].command == "hccn_tool -i 0 -pfc -s bitmap 0,0,0,1,1,0,0,0"


def test_declared(judged: Any) -> None:
    verdict = judged(CHECK, said("pfc-prio3"), machine=ONE, roce_priority=3).verdict
    assert verdict.status is Status.PASS
    verdict = judged(CHECK, said("pfc-off"), machine=ONE, flow_control="none").verdict
    assert verdict.kind is Kind.NOT_APPLICABLE


def test_unreadable(judged: Any) -> None:
    assert judged(CHECK, said("PFC configuration:"), machine=ONE).verdict.status is Status.ERROR

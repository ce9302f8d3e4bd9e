"""physical.npu-net-health"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.npu_net_health import CHECK, FAULT, NOT_SET, UNREACHABLE
from commcheck.model import Cause, Kind, Status
from tests.checks.physical.npu_answers import BUSY, ONE, told


@pytest.mark.parametrize(
    ("health", "netdetect", "status", "cause"),
    [
        ("net-health-success", "netdetect", Status.PASS, None),
        ("net-health-unreachable", "netdetect", Status.FAIL, UNREACHABLE),
        ("net-health-receive-timeout", "netdetect", Status.FAIL, UNREACHABLE),
        ("net-health-fault", "netdetect", Status.FAIL, FAULT),
        ("net-health-socket-fail", "netdetect", Status.FAIL, FAULT),
        ("net health status: Socket failed", "netdetect", Status.FAIL, FAULT),
        ("net-health-init", "netdetect-unset", Status.WARN, NOT_SET),
    ],
)
def test_each(
    judged: Any, health: str, netdetect: str, status: Status, cause: Cause | None
) -> None:
    answers = {
        "hccn_tool -i N -net_health": told(health),
        "hccn_tool -i N -netdetect": told(netdetect),
    }
    verdict = judged(CHECK, answers, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (status, cause)


@pytest.mark.parametrize("health", ["net-health-init", "net-health-detect-ip-set"])
def test_what_has_just_begun_is_not_known(judged: Any, health: str) -> None:
    for netdetect in ("netdetect", BUSY):
        answers = {
            "hccn_tool -i N -net_health": told(health),
            "hccn_tool -i N -netdetect": told(netdetect),
        }
        assert judged(CHECK, answers, machine=ONE).verdict.kind is Kind.UNDECIDABLE


def test_unreadable(judged: Any) -> None:
    answers = {"hccn_tool -i N -net_health": told("net health status: Purple")}
    assert judged(CHECK, answers, machine=ONE).verdict.status is Status.ERROR

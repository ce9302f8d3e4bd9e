"""physical.npu-mtu"""

from __future__ import annotations

from typing import Any

from checks.physical.npu_mtu import CHECK, MIXED
from commcheck.model import Status
from tests.checks.physical.npu_answers import ONE, TWO, told


def said(*names: str) -> dict[str, tuple[str, int]]:
    return {"hccn_tool -i N -mtu": told(*names)}


def test_alike_on_the_host_is_left_to_the_peers(judged: Any) -> None:
    verdict = judged(CHECK, said("mtu-4200", "mtu-4200"), machine=TWO).verdict
    assert verdict.measured["mtu_bytes"] == 4200


def test_mixed(judged: Any) -> None:
    verdict = judged(CHECK, said("mtu-4200", "mtu-1500"), machine=TWO).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, MIXED)
    assert verdict.reason == "MTU is 1500 on npu1, 4200 on npu0; want one value"


def test_declared(judged: Any) -> None:
    verdict = judged(CHECK, said("mtu-1500"), machine=ONE, mtu=4200).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, MIXED)


def test_unreadable(judged: Any) -> None:
    assert judged(CHECK, said("mtu:"), machine=ONE).verdict.status is Status.ERROR

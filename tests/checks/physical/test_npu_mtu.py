"""physical.npu-mtu"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from checks.physical.npu_mtu import CHECK, MIXED
from commcheck.model import Accelerator, Status
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


def test_the_odd_one_is_to_be_set_as_most_are_or_as_is_declared(judged: Any) -> None:
    three = replace(TWO, accelerators=(*TWO.accelerators, Accelerator(2, "ascend")))
    mixed = said("mtu-4200", "mtu-1500", "mtu-4200")
    (fix,) = judged(CHECK, mixed, machine=three).verdict.remedies
    assert fix.command == "hccn_tool -i 1 -mtu -s size 4200"
    (fix,) = judged(CHECK, mixed, machine=three, mtu=1500).verdict.remedies
    assert fix.command == "hccn_tool -i 0 -mtu -s size 1500"
    # Of two nobody can say which one is odd.
    (fix,) = judged(CHECK, said("mtu-4200", "mtu-1500"), machine=TWO).verdict.remedies
    assert fix.command == "hccn_tool -i 0 -mtu -s size <SIZE>"


def test_declared(judged: Any) -> None:
    verdict = judged(CHECK, said("mtu-1500"), machine=ONE, mtu=4200).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, MIXED)


def test_unreadable(judged: Any) -> None:
    assert judged(CHECK, said("mtu:"), machine=ONE).verdict.status is Status.ERROR

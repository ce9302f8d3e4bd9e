"""physical.roce-ecn"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checks.physical.roce_ecn import CHECK, OFF
from commcheck.model import Kind, Status

GOOD = (Path(__file__).parents[2] / "recorded" / "sysfs" / "roce-all-good.txt").read_text()


def said(*off: str) -> dict[str, tuple[str, int]]:
    text = GOOD
    for side in off:
        text = text.replace(f"{side}/enable/3:1", f"{side}/enable/3:0")
    return {"grep -rH .": (text, 0)}


def test_on(judged: Any) -> None:
    verdict = judged(CHECK, said()).verdict
    assert verdict.status is Status.PASS
    assert "CNP DSCP 48" in verdict.reason


@pytest.mark.parametrize(
    ("off", "words"),
    [(("roce_np",), "receiver (NP)"), (("roce_np", "roce_rp"), "receiver (NP) and sender (RP)")],
)
def test_off(judged: Any, off: tuple[str, ...], words: str) -> None:
    verdict = judged(CHECK, said(*off)).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, OFF)
    assert words in verdict.reason
    assert verdict.remedies[0].command.endswith("ens1np0/ecn/roce_np/enable/3")


def test_other_priorities_do_not_count(judged: Any) -> None:
    assert judged(CHECK, said("roce_np"), roce_priority=4).verdict.status is Status.PASS


def test_a_fabric_with_its_own_control_is_warned_at_most(judged: Any) -> None:
    verdict = judged(CHECK, said("roce_rp"), adaptive_routing=True).verdict
    assert verdict.status is Status.WARN


def test_a_driver_without_these_files(judged: Any) -> None:
    places = ("a/tc/1/traffic_class", "class/net/ens1np0/ecn", "kernel/config/rdma_cm/m/p")
    lines = "".join(f"grep: /sys/{place}: No such file or directory\n" for place in places)
    assert judged(CHECK, {"grep -rH .": (lines, 2)}).verdict.kind is Kind.NOT_APPLICABLE


def test_unreadable(judged: Any) -> None:
    denied = ("grep: /sys/class/net/ens1np0/ecn: Permission denied\n", 2)
    assert judged(CHECK, {"grep -rH .": denied}).verdict.status is Status.ERROR

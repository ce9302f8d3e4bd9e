"""physical.cma-roce-mode"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from checks.physical.cma_roce_mode import CHECK, VERSION_ONE
from commcheck.model import Kind, Status

RECORDED = Path(__file__).parents[2] / "recorded" / "sysfs"
GOOD = (RECORDED / "roce-all-good.txt").read_text()


def test_version_two(judged: Any) -> None:
    verdict = judged(CHECK, {"grep -rH .": (GOOD, 0)}).verdict
    assert verdict.status is Status.PASS
    assert "ToS 106" in verdict.reason


def test_version_one_is_a_warning(judged: Any) -> None:
    text = GOOD.replace("mode:RoCE v2", "mode:IB/RoCE v1")
    verdict = judged(CHECK, {"grep -rH .": (text, 0)}).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, VERSION_ONE)
    assert verdict.remedies[0].command == "cma_roce_mode -d mlx5_0 -p 1 -m 2"


def test_nobody_set_it(judged: Any) -> None:
    said = "".join(
        f"grep: /sys/{place}: No such file or directory\n"
        for place in ("a/tc/1/traffic_class", "class/net/ens1np0/ecn", "kernel/config/rdma_cm/m/p")
    )
    verdict = judged(CHECK, {"grep -rH .": (said, 2)}).verdict
    assert verdict.kind is Kind.NOT_APPLICABLE


def test_unreadable(judged: Any) -> None:
    assert judged(CHECK, {"grep -rH .": ("garbage\n", 0)}).verdict.status is Status.ERROR

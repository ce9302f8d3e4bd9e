"""physical.rdma-rate"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.rdma_rate import CHECK, LANES, SLOW
from commcheck.model import Cause, Kind, Machine, Rail, Status


def said(port: str, devices: str = "roce-400g-good.txt") -> dict[str, tuple[str, int]]:
    return {
        "grep -rHsxv 0x0000 /sys/class/infiniband": (f"sysfs/{port}", 0),
        "ibv_devinfo": (f"ibv_devinfo/{devices}", 0),
    }


def test_at_the_declared_rate(judged: Any) -> None:
    verdict = judged(CHECK, said("port-roce-400g.txt"), line_rate_gbits=400).verdict
    assert verdict.status is Status.PASS
    assert "400 Gb/s (4X NDR)" in verdict.reason


@pytest.mark.parametrize(("port", "cause"), [("port-ib-1x.txt", LANES), ("port-ib-edr.txt", SLOW)])
def test_below_the_declared_rate(judged: Any, port: str, cause: Cause) -> None:
    verdict = judged(CHECK, said(port), line_rate_gbits=400).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, cause)
    assert "want 400" in verdict.reason
    assert "mlxlink -d 0000:81:00.0 --port_state TG" in {r.command for r in verdict.remedies}


def test_undeclared_the_model_tells_the_best(judged: Any) -> None:
    best = judged(CHECK, said("port-roce-400g.txt")).verdict
    assert best.status is Status.PASS
    less = judged(CHECK, said("port-ib-edr.txt")).verdict
    assert less.kind is Kind.UNDECIDABLE
    assert "its model can do 400; declare commcheck_line_rate_gbits" in less.reason


def test_undeclared_and_an_unknown_model(judged: Any) -> None:
    answers = {"grep -rHsxv": ("sysfs/port-roce-400g.txt", 0)}
    assert judged(CHECK, answers).verdict.kind is Kind.UNDECIDABLE


def test_a_virtual_function_is_not_judged(judged: Any, rail: Rail) -> None:
    machine = Machine("gpu-01", "gpu-roce", rails=(replace(rail, is_vf=True),))
    assert judged(CHECK, {}, machine=machine).verdict.kind is Kind.NOT_APPLICABLE


def test_unreadable(judged: Any) -> None:
    assert judged(CHECK, {"grep -rHsxv": ("garbage\n", 0)}).verdict.status is Status.ERROR

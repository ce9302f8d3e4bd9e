"""physical.rdma-rate"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.rdma_rate import CHECK, LANES, SLOW, Seen, Want, judge
from commcheck.check import Nothing
from commcheck.formats.ibv_devinfo import IbvDevice
from commcheck.formats.rdma_port import RdmaPort
from commcheck.model import Cause, Kind, Machine, Origin, Rail, Status, Wanted


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


OTHER = IbvDevice("mlx5_", "28.39.1002", 0x02C9, 4119, None, ())
"""Of a name before that of the rail, and slower."""


@pytest.mark.parametrize(
    ("part_id", "best"), [(4119, 100), (4121, 100), (4123, 200), (4129, 400), (4131, 800)]
)
def test_the_best_of_each_model(rail: Rail, part_id: int, best: int) -> None:
    """ConnectX-5, -5 Ex, -6, -7, -8; the next ids are of other cards."""

    def at(rate: float, device: IbvDevice) -> Kind:
        seen = Seen(RdmaPort(rail.hca, 1, rate_gbits=rate), (OTHER, device))
        verdict = judge(seen, rail, Want(Wanted(None, Origin(""))), Nothing())
        assert (verdict.kind is Kind.NONE) is (verdict.status is Status.PASS)
        return verdict.kind

    mine = replace(OTHER, hca=rail.hca, part_id=part_id)
    assert at(best, mine) is at(best + 1, mine) is Kind.NONE
    assert at(best - 1, mine) is Kind.UNDECIDABLE
    assert at(best, replace(mine, part_id=part_id + 1)) is Kind.UNDECIDABLE
    for vendor in (0x02C8, 0x02CA):
        assert at(best, replace(mine, vendor_id=vendor)) is Kind.UNDECIDABLE


@pytest.mark.parametrize(
    ("lanes", "cause"), [(1, LANES), (2, LANES), (3, LANES), (4, SLOW), (8, SLOW), (None, SLOW)]
)
def test_lanes_are_lost_below_four(rail: Rail, lanes: int | None, cause: Cause) -> None:
    seen = Seen(RdmaPort(rail.hca, 1, rate_gbits=100, lanes=lanes), ())
    verdict = judge(seen, rail, Want(Wanted(400, Origin("prod.yaml:3"))), Nothing())
    assert (verdict.status, verdict.cause) == (Status.FAIL, cause)


def test_undeclared_and_an_unknown_model(judged: Any) -> None:
    answers = {"grep -rHsxv": ("sysfs/port-roce-400g.txt", 0)}
    assert judged(CHECK, answers).verdict.kind is Kind.UNDECIDABLE


def test_a_virtual_function_is_not_judged(judged: Any, rail: Rail) -> None:
    machine = Machine("gpu-01", "gpu-roce", rails=(replace(rail, is_vf=True),))
    assert judged(CHECK, {}, machine=machine).verdict.kind is Kind.NOT_APPLICABLE


def test_unreadable(judged: Any) -> None:
    assert judged(CHECK, {"grep -rHsxv": ("garbage\n", 0)}).verdict.status is Status.ERROR

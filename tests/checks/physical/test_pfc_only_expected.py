"""physical.pfc-only-expected"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.pfc_only_expected import CHECK, EXTRA
from commcheck.model import Kind, Machine, Rail, Status


def said(name: str, rc: int = 0) -> dict[str, tuple[str, int]]:
    return {"mlnx_qos": (f"mlnx_qos/{name}", rc)}


@pytest.mark.parametrize("name", ["good-dscp-prio3.txt", "pfc-off.txt", "trust-pcp.txt"])
def test_no_other(judged: Any, name: str) -> None:
    assert judged(CHECK, said(name)).verdict.status is Status.PASS


def test_all(judged: Any) -> None:
    verdict = judged(CHECK, said("all-prios-on.txt")).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, EXTRA)
    assert verdict.reason.endswith("PFC on 0, 1, 2, 3, 4, 5, 6, 7, want it on 3 only")
    assert [remedy.command for remedy in verdict.remedies] == [
        "mlnx_qos -i ens1np0 --pfc 0,0,0,1,0,0,0,0",
        "dcb pfc set dev ens1np0 prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off",
    ]


@pytest.mark.parametrize(
    ("lossless", "status"),
    [
        (list(range(8)), Status.PASS),
        ("0,1,2,4,5,6,7", Status.PASS),  # the RoCE priority counts by itself
        ([3, 5], Status.WARN),
        ([], Status.WARN),
    ],
)
def test_the_inventory_may_list_more(judged: Any, lossless: object, status: Status) -> None:
    verdict = judged(CHECK, said("all-prios-on.txt"), lossless_priorities=lossless).verdict
    assert verdict.status is status
    if lossless == [3, 5]:
        assert verdict.remedies[0].command.endswith("--pfc 0,0,0,1,0,1,0,0")
        assert verdict.remedies[1].command.endswith(" 3:on 4:off 5:on 6:off 7:off")


def test_a_fabric_without_pfc(judged: Any) -> None:
    verdict = judged(CHECK, said("all-prios-on.txt"), flow_control="none").verdict
    assert verdict.kind is Kind.NOT_APPLICABLE


def test_dcb_speaks_too(judged: Any) -> None:
    dcb = {
        "dcb -j pfc": ('{"prio_pfc":[true,false,false,true,false,false,false,false]}\n', 0),
        "dcb -j app": ("dcb/app-dscp.json", 0),
        "dcb -j dcbx": ("dcb/dcbx-host.json", 0),
    }
    assert judged(CHECK, dcb).verdict.cause is EXTRA


def test_nobody_speaks(judged: Any) -> None:
    assert judged(CHECK, said("traceback-import.txt", 1)).verdict.status is Status.ERROR


@pytest.mark.parametrize("change", [{"is_vf": True}, {"link_layer": "InfiniBand"}])
def test_not_its_business(judged: Any, rail: Rail, change: dict[str, Any]) -> None:
    machine = Machine("gpu-01", "gpu-roce", rails=(replace(rail, **change),))
    assert judged(CHECK, machine=machine).verdict.kind is Kind.NOT_APPLICABLE

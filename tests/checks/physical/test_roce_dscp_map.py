"""physical.roce-dscp-map"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.roce_dscp_map import CHECK, ELSEWHERE, TWICE
from commcheck.model import Cause, Kind, Machine, Rail, Status


def said(name: str, rc: int = 0) -> dict[str, tuple[str, int]]:
    return {"mlnx_qos": (f"mlnx_qos/{name}", rc)}


def by_dcb(app: str) -> dict[str, tuple[str, int]]:
    return {
        "dcb -j pfc": ("dcb/pfc-good.json", 0),
        "dcb -j app": (app, 0),
        "dcb -j dcbx": ("dcb/dcbx-host.json", 0),
    }


@pytest.mark.parametrize(
    "name",
    [
        "good-dscp-prio3.txt",
        "pfc-off.txt",  # PFC is another check's
        "wrong-prio-4.txt",
        "unsorted-tcs.txt",
    ],
)
def test_right(judged: Any, name: str) -> None:
    verdict = judged(CHECK, said(name)).verdict
    assert verdict.status is Status.PASS
    assert verdict.measured == {"dscp_priorities": [3]}


def test_remapped(judged: Any) -> None:
    verdict = judged(CHECK, said("dscp26-remapped.txt")).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, ELSEWHERE)
    assert verdict.reason == "mlx5_0 (ens1np0) maps DSCP 26 to priority 0, want 3"
    assert [remedy.command for remedy in verdict.remedies] == [
        "mlnx_qos -i ens1np0 --dscp2prio set,26,3",
        "dcb app replace dev ens1np0 dscp-prio 26:3",
    ]


@pytest.mark.parametrize(
    ("dscp", "priority", "status"),
    [(40, 5, Status.PASS), (40, 3, Status.FAIL), (33, 4, Status.PASS)],
)
def test_other_fabrics(judged: Any, dscp: int, priority: int, status: Status) -> None:
    good = said("good-dscp-prio3.txt")
    verdict = judged(CHECK, good, roce_dscp=dscp, roce_priority=priority).verdict
    assert verdict.status is status


@pytest.mark.parametrize(
    ("app", "status", "cause", "says"),
    [
        ("dcb/app-dscp.json", Status.PASS, None, "DSCP 26 to priority 3"),
        ('{"dscp_prio":[[48,6]]}\n', Status.FAIL, ELSEWHERE, "priority 0 (not listed"),
        ('{"dscp_prio":[[48,6]],"default_prio":[3]}\n', Status.PASS, None, "priority 3 (not"),
        ('{"dscp_prio":[[26,0],[26,3]]}\n', Status.WARN, TWICE, "priority 0 and 3"),
    ],
)
def test_dcb(judged: Any, app: str, status: Status, cause: Cause | None, says: str) -> None:
    verdict = judged(CHECK, by_dcb(app)).verdict
    assert (verdict.status, verdict.cause) == (status, cause)
    assert says in verdict.reason


def test_what_the_layout_does_not_tell(judged: Any) -> None:
    assert judged(CHECK, said("layout-classic-2017.txt")).verdict.kind is Kind.UNDECIDABLE


def test_a_fabric_that_marks_in_the_vlan_tag(judged: Any) -> None:
    verdict = judged(CHECK, said("trust-pcp.txt"), trust="pcp").verdict
    assert verdict.kind is Kind.NOT_APPLICABLE


def test_nobody_speaks(judged: Any) -> None:
    assert judged(CHECK, said("not-supported.txt", 1)).verdict.status is Status.ERROR


@pytest.mark.parametrize("change", [{"is_vf": True}, {"link_layer": "InfiniBand"}])
def test_not_its_business(judged: Any, rail: Rail, change: dict[str, Any]) -> None:
    machine = Machine("gpu-01", "gpu-roce", rails=(replace(rail, **change),))
    assert judged(CHECK, machine=machine).verdict.kind is Kind.NOT_APPLICABLE


def test_a_fabric_of_its_own_is_not_to_be_changed_host_by_host() -> None:
    """Oracle's cluster networks map DSCP 26 and 10 to priority 5 on every host."""
    assert ELSEWHERE.everywhere is not None
    assert "commcheck_roce_dscp" in ELSEWHERE.everywhere.en

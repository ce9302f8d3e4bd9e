"""physical.roce-tclass"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checks.physical.roce_tclass import CHECK, OTHER_DSCP
from commcheck.model import Kind, Status

RECORDED = Path(__file__).parents[2] / "recorded"
FORCED = (RECORDED / "sysfs" / "roce-all-good.txt").read_text()
NOTHING = (
    "grep: /sys/class/infiniband/mlx5_0/tc/1/traffic_class: No such file or directory\n"
    "grep: /sys/class/net/ens1np0/ecn: No such file or directory\n"
    "grep: /sys/kernel/config/rdma_cm/mlx5_0/ports/1: No such file or directory\n"
)
NO_CONF = ("cat: /etc/nccl.conf: No such file or directory\n", 1)


def said(
    qos: str = "good-dscp-prio3.txt", *, forced: int | None = None, conf: str = ""
) -> dict[str, tuple[str, int]]:
    marking = (NOTHING, 2) if forced is None else (FORCED.replace("=106", f"={forced}"), 0)
    return {
        "grep -rH .": marking,
        "cat /etc/nccl.conf": (conf, 0) if conf else NO_CONF,
        "mlnx_qos": (f"mlnx_qos/{qos}", 0),
    }


@pytest.mark.parametrize("forced", [104, 106])
def test_the_whole_chain(judged: Any, forced: int) -> None:
    verdict = judged(CHECK, said(forced=forced)).verdict
    assert verdict.status is Status.PASS
    assert verdict.reason.endswith(
        f"traffic class {forced} (forced by the driver) -> DSCP 26 -> trust dscp -> priority 3 "
        "-> PFC on for 3"
    )


def test_nothing_forced_leaves_it_to_the_jobs(judged: Any) -> None:
    verdict = judged(CHECK, said()).verdict
    assert verdict.status is Status.PASS
    assert "none is forced, jobs set NCCL_IB_TC=104 -> DSCP 26" in verdict.reason


def test_what_every_job_begins_with(judged: Any) -> None:
    good = judged(CHECK, said(conf="NCCL_IB_TC=106\n")).verdict
    assert (good.status, "(/etc/nccl.conf)" in good.reason) == (Status.PASS, True)
    # What the driver forces wins.
    assert judged(CHECK, said(conf="NCCL_IB_TC=0\n", forced=106)).verdict.status is Status.PASS


@pytest.mark.parametrize(
    "answers", [said(forced=160), said(conf="NCCL_IB_TC=160\n"), said(forced=0)]
)
def test_another_dscp(judged: Any, answers: dict[str, tuple[str, int]]) -> None:
    verdict = judged(CHECK, answers).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, OTHER_DSCP)
    assert "breaks here: want DSCP 26" in verdict.reason
    assert [each.command for each in verdict.remedies] == [
        "NCCL_IB_TC=106",
        "echo 106 > /sys/class/infiniband/mlx5_0/tc/1/traffic_class",
    ]


@pytest.mark.parametrize("answers", [{"forced": 96}, {"conf": "NCCL_IB_TC=0\n"}, {}])
def test_where_the_vlan_tag_counts_no_traffic_class_does(judged: Any, answers: Any) -> None:
    verdict = judged(CHECK, said("trust-pcp.txt", **answers), trust="pcp").verdict
    assert verdict.status is Status.PASS
    assert verdict.reason.endswith("-> trust pcp -> priority 3 by the VLAN tag -> PFC on for 3"), (
        verdict.reason
    )


def test_another_pair_may_be_declared(judged: Any) -> None:
    """Traffic class 160 is DSCP 40, priority 5 by the factory's map; PFC is not on for it here."""
    verdict = judged(CHECK, said(forced=160), roce_dscp=40, roce_priority=5).verdict
    assert verdict.kind is Kind.BLOCKED
    assert "DSCP 40 -> trust dscp -> priority 5 -> PFC off for 5" in verdict.reason


@pytest.mark.parametrize(
    ("qos", "broken", "by"),
    [
        ("trust-pcp.txt", "trust pcp, breaks here", "physical.roce-trust-dscp"),
        ("dscp26-remapped.txt", "priority 0, breaks here", "physical.roce-dscp-map"),
        ("pfc-off.txt", "PFC off for 3, breaks here", "physical.pfc-enabled"),
    ],
)
def test_a_break_further_on_is_shown_and_is_another_checks_fail(
    judged: Any, qos: str, broken: str, by: str
) -> None:
    verdict = judged(CHECK, said(qos, forced=106)).verdict
    assert verdict.kind is Kind.BLOCKED
    assert broken in verdict.reason
    assert by in verdict.reason


def test_lossy_and_tagged_fabrics(judged: Any) -> None:
    lossy = judged(CHECK, said("pfc-off.txt", forced=106), flow_control="none").verdict
    assert lossy.status is Status.PASS
    tagged = judged(CHECK, said("trust-pcp.txt", forced=106), trust="pcp").verdict
    assert tagged.status is Status.PASS
    assert "by the VLAN tag" in tagged.reason


def test_what_cannot_be_read_is_undecided(judged: Any) -> None:
    answers = said(forced=106)
    del answers["mlnx_qos"]
    assert judged(CHECK, answers).verdict.kind is Kind.UNDECIDABLE
    old = judged(CHECK, said("layout-classic-2017.txt", forced=106)).verdict
    assert old.kind is Kind.UNDECIDABLE
    assert judged(CHECK, said(conf="NCCL_IB_TC=many\n")).verdict.kind is Kind.UNDECIDABLE
    denied = said() | {"grep -rH .": ("grep: /sys/x: Permission denied\n", 2)}
    assert judged(CHECK, denied).verdict.kind is Kind.UNDECIDABLE


def test_a_fabric_of_its_own_is_not_to_be_changed_host_by_host() -> None:
    """Oracle's cluster networks map DSCP 26 and 10 to priority 5 on every host."""
    assert OTHER_DSCP.everywhere is not None
    assert "commcheck_roce_dscp" in OTHER_DSCP.everywhere.en

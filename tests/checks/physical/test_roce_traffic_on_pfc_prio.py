"""Which priority the bytes of RDMA were counted on."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from checks.physical.roce_traffic_on_pfc_prio import (
    CHECK,
    WRONG_PRIORITY,
    Limits,
    Seen,
    Want,
    judge,
)
from commcheck.model import Kind, Origin, Rail, Status, Wanted
from tests.checks.conftest import Judge, Watch

RDMA = "rx_vport_rdma_unicast_bytes"
TOTALS = {RDMA: 10**15, **{f"rx_prio{prio}_bytes": 10**15 for prio in range(8)}}
SAID = Origin("inventory/prod.yaml:3")
PFC = Want(Wanted(3, SAID), Wanted("pfc", SAID))
GB = 10**9


@pytest.mark.parametrize(
    ("added", "status"),
    [
        ({RDMA: 100 * GB, "rx_prio3_bytes": 102 * GB}, Status.PASS),
        # TCP on best effort is nobody's fault, however much it is.
        ({RDMA: 10 * GB, "rx_prio3_bytes": 10 * GB, "rx_prio0_bytes": 90 * GB}, Status.PASS),
        ({RDMA: 100 * GB, "rx_prio0_bytes": 102 * GB}, Status.FAIL),
        ({RDMA: 100 * GB, "rx_prio4_bytes": 99 * GB, "rx_prio3_bytes": GB}, Status.FAIL),
        ({RDMA: GB // 2, "rx_prio0_bytes": GB}, Status.SKIP),
        ({"rx_prio0_bytes": 90 * GB}, Status.SKIP),
    ],
)
def test_judge(watched: Watch, rail: Rail, added: Mapping[str, int], status: Status) -> None:
    verdict = judge(Seen(watched(TOTALS, added)), rail, PFC, Limits())
    assert verdict.status is status
    assert verdict.cause is (WRONG_PRIORITY if status is Status.FAIL else None)
    if status is Status.FAIL:
        assert "most went on priority" in verdict.reason
        assert verdict.remedies[1].command == "export NCCL_IB_TC=106"
    if status is Status.SKIP:
        assert verdict.kind is Kind.NOT_APPLICABLE


def test_what_flows_now_is_better_than_what_once_did(watched: Watch, rail: Rail) -> None:
    now = {RDMA: 100 * GB, "rx_prio3_bytes": 100 * GB}
    once = {RDMA: 900 * GB, "rx_prio3_bytes": 100 * GB, "rx_prio0_bytes": 800 * GB}
    assert judge(Seen(watched(TOTALS, now, since=once)), rail, PFC, Limits()).status is Status.PASS
    only = judge(Seen(watched(TOTALS, since=once)), rail, PFC, Limits())
    assert only.status is Status.FAIL


def test_a_driver_that_does_not_count_rdma_apart(watched: Watch, rail: Rail) -> None:
    names = {f"rx_bytes_pri{prio}": 10**15 for prio in range(8)}
    wrong = watched(names, {"rx_bytes_pri0": 50 * GB, "rx_bytes_pri3": GB})
    assert judge(Seen(wrong), rail, PFC, Limits()).status is Status.FAIL


def test_recordings(judged: Judge) -> None:
    idle = judged(CHECK, {"ethtool": ("ethtool/stats-mlx5-good.txt", 0)})
    assert idle.verdict.kind is Kind.NOT_APPLICABLE
    lossy = judged(CHECK, {"ethtool": ("ethtool/stats-mlx5-good.txt", 0)}, flow_control="none")
    assert lossy.verdict.kind is Kind.NOT_APPLICABLE
    unknown = judged(CHECK, {"ethtool": ("ethtool/stats-efa-ena.txt", 0)})
    assert unknown.verdict.kind is Kind.UNDECIDABLE

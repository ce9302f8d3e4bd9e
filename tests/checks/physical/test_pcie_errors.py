"""Errors of the slot, and what to say where nobody counts them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checks.physical.pcie_errors import CHECK, PCIE_ERRORS, PCIE_SIGNAL, Seen, judge
from commcheck.check import Nothing, Unread
from commcheck.growing import Limits
from commcheck.model import Cause, Kind, Machine, Rail, Status
from tests.checks.conftest import RAIL, Judge, Watch

AER = {
    "fatal.TOTAL_ERR_FATAL": 0,
    "nonfatal.TOTAL_ERR_NONFATAL": 0,
    "correctable.TOTAL_ERR_COR": 0,
}
CARD = {"rx_pci_signal_integrity": 0, "outbound_pci_stalled_wr_events": 0}
NONE = Unread("not there", "CommandFailed")
AER_TEXT = "".join(
    f"/sys/class/infiniband/mlx5_0/device/aer_dev_{kind}:{name} 0\n"
    for kind, name in (
        ("fatal", "DLP"),
        ("fatal", "TOTAL_ERR_FATAL"),
        ("nonfatal", "TOTAL_ERR_NONFATAL"),
        ("correctable", "RxErr"),
        ("correctable", "TOTAL_ERR_COR"),
    )
)


@pytest.mark.parametrize(
    ("name", "status", "cause"),
    [
        ("fatal.TOTAL_ERR_FATAL", Status.FAIL, PCIE_ERRORS),
        ("nonfatal.TOTAL_ERR_NONFATAL", Status.FAIL, PCIE_ERRORS),
        ("correctable.TOTAL_ERR_COR", Status.WARN, PCIE_SIGNAL),
        ("rx_pci_signal_integrity", Status.WARN, PCIE_SIGNAL),
        ("outbound_pci_stalled_wr_events", Status.WARN, PCIE_SIGNAL),
        ("", Status.PASS, None),
    ],
)
def test_judge(watched: Watch, rail: Rail, name: str, status: Status, cause: Cause | None) -> None:
    added = {name: 9}
    aer = watched({**AER, **{n: 9 for n in AER if n == name}}, added)
    card = watched({**CARD, **{n: 9 for n in CARD if n == name}}, added)
    verdict = judge(Seen(aer, card), rail, Nothing(), Limits())
    assert (verdict.status, verdict.cause) == (status, cause)


def test_one_of_the_two_is_enough(watched: Watch, rail: Rail) -> None:
    assert judge(Seen(NONE, watched(CARD)), rail, Nothing(), Limits()).status is Status.PASS
    assert judge(Seen(watched(AER), NONE), rail, Nothing(), Limits()).status is Status.PASS
    neither = judge(Seen(NONE, NONE), rail, Nothing(), Limits())
    assert neither.kind is Kind.UNDECIDABLE
    assert "in a VM" in neither.reason


def test_through_the_engine(judged: Judge) -> None:
    assert judged(CHECK, {"grep": (AER_TEXT, 0)}).verdict.status is Status.PASS
    assert judged(CHECK, {"grep": ("", 2)}).verdict.kind is Kind.UNDECIDABLE
    virtual = Machine("gpu-01", "gpu-roce", rails=(replace(RAIL, is_vf=True),))
    assert judged(CHECK, machine=virtual).verdict.kind is Kind.NOT_APPLICABLE

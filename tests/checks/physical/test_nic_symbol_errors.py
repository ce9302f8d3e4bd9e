"""Damaged packets count, what FEC corrected does not."""

from __future__ import annotations

import pytest

from checks.physical.nic_symbol_errors import CHECK, DAMAGED, Seen, judge
from commcheck.check import Nothing
from commcheck.growing import Limits
from commcheck.model import Kind, Rail, Status
from tests.checks.conftest import Judge, Watch

CLEAN = {
    "rx_pcs_symbol_err_phy": 0,
    "rx_symbol_err_phy": 0,
    "rx_crc_errors_phy": 0,
    "rx_corrected_bits_phy": 18220114,
}


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("rx_pcs_symbol_err_phy", Status.FAIL),
        ("rx_symbol_err_phy", Status.FAIL),
        ("rx_crc_errors_phy", Status.FAIL),
        ("rx_corrected_bits_phy", Status.PASS),
    ],
)
def test_what_grows(watched: Watch, rail: Rail, name: str, status: Status) -> None:
    seen = Seen(watched({**CLEAN, name: 77120}, {name: 20}))
    verdict = judge(seen, rail, Nothing(), Limits())
    assert verdict.status is status
    assert verdict.cause is (DAMAGED if status is Status.FAIL else None)


def test_a_few_since_an_earlier_run_warn(watched: Watch, rail: Rail) -> None:
    seen = Seen(watched({**CLEAN, "rx_crc_errors_phy": 3}, since={"rx_crc_errors_phy": 3}))
    assert judge(seen, rail, Nothing(), Limits()).status is Status.WARN


@pytest.mark.parametrize(
    ("recording", "status", "kind"),
    [
        ("stats-mlx5-good", Status.PASS, Kind.NONE),
        ("stats-mlx5-symbol-errors", Status.SKIP, Kind.UNDECIDABLE),
        ("stats-bnxt-discards", Status.SKIP, Kind.UNDECIDABLE),
        ("stats-efa-ena", Status.SKIP, Kind.UNDECIDABLE),  # not what mlx5_core prints
    ],
)
def test_recordings(judged: Judge, recording: str, status: Status, kind: Kind) -> None:
    finding = judged(CHECK, {"ethtool": (f"ethtool/{recording}.txt", 0)})
    assert (finding.verdict.status, finding.verdict.kind) == (status, kind)


def test_unreadable(judged: Judge) -> None:
    finding = judged(CHECK, {"ethtool": ("NIC statistics:\n     rx_symbol_err_phy: 4", 0)})
    assert finding.verdict.error == "ParseError"

"""physical.nvlink-errors"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.nvlink_errors import CHECK, NOISY, Limits, Seen, judge
from commcheck.check import Nothing
from commcheck.formats.nvlink_errors import LinkErrors
from commcheck.model import Kind, Machine, Status

ONE = Machine("gpu-01", "gpu-roce")


@pytest.mark.parametrize(
    ("name", "status", "kind", "says"),
    [
        ("h100", Status.PASS, Kind.NONE, "36 NVLinks without errors that matter; 2 packets"),
        ("b200", Status.PASS, Kind.NONE, "18 NVLinks"),
        ("noisy", Status.WARN, Kind.NONE, "gpu1 link 5 6 retrained, 89032 resent"),
        ("pcie-card", Status.SKIP, Kind.NOT_APPLICABLE, "no NVLink"),
    ],
)
def test_recorded(judged: Any, name: str, status: Status, kind: Kind, says: str) -> None:
    said = {"nvidia-smi nvlink -e": (f"gpu-health/nvlink-errors-{name}.txt", 0)}
    verdict = judged(CHECK, said, machine=ONE).verdict
    assert (verdict.status, verdict.kind) == (status, kind)
    assert says in verdict.reason
    assert verdict.cause is (NOISY if status is Status.WARN else None)


@pytest.mark.parametrize(
    ("counts", "status"),
    [
        ((("Replay Errors", 100), ("Recovery Errors", 0)), Status.PASS),
        ((("Replay Errors", 60), ("CRC Errors", 60)), Status.WARN),
        ((("Recovery Errors", 1),), Status.WARN),
        ((("Effective Errors", 3),), Status.PASS),
        ((("Effective Errors", 300),), Status.WARN),
        ((("Link recovery failed events", 1),), Status.WARN),
        ((("Effective Errors", 0), ("Link recovery successful events", 3)), Status.PASS),
        ((("Effective Errors", 0), ("Link recovery successful events", 505)), Status.WARN),
        ((("FEC Errors - 0", 11_000_000),), Status.SKIP),  # corrected, and nothing else told
    ],
)
def test_counts(counts: tuple[tuple[str, int], ...], status: Status) -> None:
    verdict = judge(Seen((LinkErrors(0, 3, counts),)), ONE, Nothing(), Limits())
    assert verdict.status is status


def test_many_noisy_links_are_not_all_named() -> None:
    links = tuple(LinkErrors(0, at, (("Recovery Errors", 1),)) for at in range(18))
    verdict = judge(Seen(links), ONE, Nothing(), Limits())
    assert verdict.reason.endswith("and 14 more")

"""physical.pcie-mrrs"""

from __future__ import annotations

from typing import Any

from checks.physical.pcie_mrrs import CHECK, SMALL
from commcheck.model import Kind, Status


def said(name: str) -> dict[str, tuple[str, int]]:
    return {"lspci -D -vvv -s 0000:81:00.0": (name, 0)}


def test_large(judged: Any) -> None:
    verdict = judged(CHECK, said("lspci/cx7-good.txt")).verdict
    assert verdict.status is Status.PASS
    assert verdict.measured["relaxed_ordering"] is True


def test_small_is_a_warning(judged: Any) -> None:
    verdict = judged(CHECK, said("lspci/cx7-mrrs-512-ro-off.txt")).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, SMALL)
    assert verdict.remedies[1].command == "setpci -s 0000:81:00.0 CAP_EXP+8.w=5000:7000"


def test_without_root_it_is_undecided(judged: Any) -> None:
    verdict = judged(CHECK, said("lspci/nonroot-access-denied.txt")).verdict
    assert verdict.kind is Kind.UNDECIDABLE
    assert "needs root" in verdict.reason


def test_a_card_that_has_left_the_bus(judged: Any) -> None:
    gone = "0000:81:00.0 Ethernet controller: Mellanox (rev ff)\n\t!!! Unknown header type 7f\n\n"
    verdict = judged(CHECK, said(gone)).verdict
    assert verdict.kind is Kind.UNDECIDABLE
    assert "does not answer on the bus" in verdict.reason


def test_no_such_device(judged: Any) -> None:
    assert judged(CHECK, said("\n")).verdict.kind is Kind.UNDECIDABLE


def test_unreadable(judged: Any) -> None:
    assert judged(CHECK, said("garbage\n")).verdict.status is Status.ERROR

"""physical.npu-count"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from checks.physical.npu_count import CHECK, LOST, Seen, Want, judge
from commcheck.check import Nothing
from commcheck.formats.npu_smi import NpuChip, NpuSmi
from commcheck.model import Accelerator, Kind, Machine, Origin, Status, Wanted

EIGHT = Machine("npu-01", "ascend", accelerators=tuple(Accelerator(n, "ascend") for n in range(8)))


def said(name: str, rc: int = 0) -> dict[str, tuple[str, int]]:
    return {"npu-smi info": (f"npu-smi/{name}.txt", rc)}


def test_all_are_there(judged: Any) -> None:
    for declared in ({}, {"npu_count": 8}):
        verdict = judged(CHECK, said("info-910b-good"), machine=EIGHT, **declared).verdict
        assert verdict.status is Status.PASS
        assert "8 NPUs, 910B3" in verdict.reason


def test_one_is_lost(judged: Any) -> None:
    verdict = judged(CHECK, said("info-7-cards"), machine=EIGHT, npu_count=8).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, LOST)
    assert "lists 7 NPUs (0, 1, 3, 4, 5, 6, 7), want 8" in verdict.reason


def test_a_lost_chip_of_a_module_is_missing_in_the_numbers() -> None:
    """Both chips of an A3's module have its number: what it still lists would look whole."""
    chips = [NpuChip(n // 2, n % 2, "Ascend910", "OK", "0000:9d:00.0", n) for n in (0, 1, 2, 4, 5)]
    seen = Seen(NpuSmi("25.5.0", tuple(chips)))
    verdict = judge(seen, EIGHT, Want(Wanted(6, Origin("group_vars/npu.yml:3"))), Nothing())
    assert "lists 5 NPUs (0, 1, 2, 4, 5), want 6" in verdict.reason


def test_undeclared_is_what_the_host_shows(judged: Any) -> None:
    assert judged(CHECK, said("info-7-cards"), machine=EIGHT).verdict.cause is LOST
    seven = replace(EIGHT, accelerators=EIGHT.accelerators[:7])
    assert judged(CHECK, said("info-7-cards"), machine=seven).verdict.status is Status.PASS


def test_no_driver_is_no_missing_card(judged: Any) -> None:
    verdict = judged(CHECK, said("not-in-container", 1), machine=EIGHT).verdict
    assert verdict.status is Status.ERROR
    assert "-8005" in verdict.reason


def test_npus_that_are_not_asked_are_told(judged: Any) -> None:
    few = replace(EIGHT, accelerators=EIGHT.accelerators[:2])
    verdict = judged(CHECK, said("info-910b-good"), machine=few).verdict
    assert verdict.kind is Kind.UNDECIDABLE
    assert "8 NPUs, and 2 are found" in verdict.reason

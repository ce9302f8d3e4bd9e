"""physical.ib-pkey"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.ib_pkey import CHECK, LIMITED, MISSING
from commcheck.model import Kind, Machine, Rail, Status


@pytest.fixture
def machine(rail: Rail) -> Machine:
    return Machine("gpu-01", "gpu-ib", rails=(replace(rail, link_layer="InfiniBand"),))


def said(name: str) -> dict[str, tuple[str, int]]:
    return {"grep -rHsxv 0x0000": (f"sysfs/{name}", 0)}


def test_full_member(judged: Any, machine: Machine) -> None:
    answers = said("port-ib-ndr.txt")
    assert judged(CHECK, answers, machine=machine).verdict.status is Status.PASS
    other = judged(CHECK, answers, machine=machine, pkey="0x8001").verdict
    assert other.status is Status.PASS


def test_limited_member(judged: Any, machine: Machine) -> None:
    verdict = judged(CHECK, said("port-ib-limited.txt"), machine=machine).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, LIMITED)
    assert "0x7fff, want 0xffff" in verdict.reason


def test_no_member(judged: Any, machine: Machine) -> None:
    verdict = judged(CHECK, said("port-ib-ndr.txt"), machine=machine, pkey=0x8002).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, MISSING)


def test_roce_has_none(judged: Any, rail: Rail) -> None:
    mixed = Machine("gpu-01", "gpu-ib", rails=(rail,))
    assert judged(CHECK, machine=mixed).verdict.kind is Kind.NOT_APPLICABLE


def test_unreadable(judged: Any, machine: Machine) -> None:
    answers = {"grep -rHsxv": ("garbage\n", 0)}
    assert judged(CHECK, answers, machine=machine).verdict.status is Status.ERROR

"""physical.ib-subnet-manager"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.ib_subnet_manager import CHECK, NO_MANAGER
from commcheck.model import Kind, Machine, Rail, Status
from tests.checks.conftest import RECORDED


@pytest.fixture
def machine(rail: Rail) -> Machine:
    return Machine("gpu-01", "gpu-ib", rails=(replace(rail, link_layer="InfiniBand"),))


def said(name: str) -> dict[str, tuple[str, int]]:
    return {"grep -rHsxv 0x0000": (f"sysfs/{name}", 0)}


def test_served(judged: Any, machine: Machine) -> None:
    verdict = judged(CHECK, said("port-ib-ndr.txt"), machine=machine).verdict
    assert verdict.status is Status.PASS
    assert "SM lid 1" in verdict.reason


def test_served_while_its_link_recovers(judged: Any, machine: Machine) -> None:
    text = (
        (RECORDED / "sysfs" / "port-ib-ndr.txt").read_text().replace("4: ACTIVE", "5: ACTIVE_DEFER")
    )
    assert "ACTIVE_DEFER" in text
    verdict = judged(CHECK, {"grep -rHsxv 0x0000": (text, 0)}, machine=machine).verdict
    assert verdict.status is Status.PASS


def test_not_served(judged: Any, machine: Machine) -> None:
    verdict = judged(CHECK, said("port-ib-no-sm.txt"), machine=machine).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, NO_MANAGER)
    assert "INIT, lid 65535, SM lid 0" in verdict.reason


def test_without_a_link_it_is_not_the_managers_fault(judged: Any, machine: Machine) -> None:
    verdict = judged(CHECK, said("port-down.txt"), machine=machine).verdict
    assert verdict.kind is Kind.NOT_APPLICABLE


def test_roce_has_none(judged: Any, rail: Rail) -> None:
    mixed = Machine("gpu-01", "gpu-ib", rails=(rail,))
    assert judged(CHECK, machine=mixed).verdict.kind is Kind.NOT_APPLICABLE


def test_unreadable(judged: Any, machine: Machine) -> None:
    answers = {"grep -rHsxv": ("garbage\n", 0)}
    assert judged(CHECK, answers, machine=machine).verdict.status is Status.ERROR

"""physical.ib-pkey"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checks.physical.ib_pkey import CHECK, LIMITED, MISSING, SLOT
from commcheck.model import Kind, Machine, Rail, Status

NDR = (Path(__file__).parents[2] / "recorded" / "sysfs" / "port-ib-ndr.txt").read_text()


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
    assert "0x7fff, want a full one" in verdict.reason
    declared = judged(CHECK, said("port-ib-limited.txt"), machine=machine, pkey="0xffff").verdict
    assert (declared.status, declared.cause) == (Status.FAIL, LIMITED)
    assert "0x7fff, want 0xffff" in declared.reason


def test_a_tenant_is_limited_in_the_default_partition(judged: Any, machine: Machine) -> None:
    """As on Azure: its own partition in full, the one of all tenants limited."""
    verdict = judged(CHECK, said("port-ib-tenant.txt"), machine=machine).verdict
    assert verdict.status is Status.PASS
    assert "0x800b, 0x7fff, full in slot 0" in verdict.reason
    declared = judged(CHECK, said("port-ib-tenant.txt"), machine=machine, pkey="0x800c").verdict
    assert (declared.status, declared.cause) == (Status.FAIL, MISSING)


def test_a_full_key_in_another_slot(judged: Any, machine: Machine) -> None:
    """NCCL_IB_PKEY is a slot of the table, and 0 where it is unset."""
    answers = said("port-ib-tenant-second.txt")
    verdict = judged(CHECK, answers, machine=machine).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, SLOT)
    assert "slot 0 (NCCL's default) has 0x7fff and 0x800b is in slot 2" in verdict.reason
    assert verdict.remedies[0].command == "NCCL_IB_PKEY=2"
    declared = judged(CHECK, answers, machine=machine, pkey="0x800b").verdict
    assert declared.status is Status.PASS
    assert "jobs set NCCL_IB_PKEY=2" in declared.reason
    conf = {"cat /etc/nccl.conf": ("NCCL_IB_PKEY=2\n", 0)}
    told = judged(CHECK, answers | conf, machine=machine).verdict
    assert told.status is Status.PASS
    assert "slot 2 (/etc/nccl.conf)" in told.reason
    beyond = {"cat /etc/nccl.conf": ("NCCL_IB_PKEY=11\n", 0)}
    verdict = judged(CHECK, answers | beyond, machine=machine).verdict
    assert verdict.cause is SLOT
    assert "slot 11 (/etc/nccl.conf) has nothing" in verdict.reason


def test_no_member(judged: Any, machine: Machine) -> None:
    verdict = judged(CHECK, said("port-ib-ndr.txt"), machine=machine, pkey=0x8002).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, MISSING)
    none = "".join(line for line in NDR.splitlines(keepends=True) if "pkeys" not in line)
    verdict = judged(CHECK, {"grep -rHsxv 0x0000": (none, 0)}, machine=machine).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, MISSING)


def test_roce_has_none(judged: Any, rail: Rail) -> None:
    mixed = Machine("gpu-01", "gpu-ib", rails=(rail,))
    assert judged(CHECK, machine=mixed).verdict.kind is Kind.NOT_APPLICABLE


def test_unreadable(judged: Any, machine: Machine) -> None:
    answers = {"grep -rHsxv": ("garbage\n", 0)}
    assert judged(CHECK, answers, machine=machine).verdict.status is Status.ERROR

"""physical.ib-consistency"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.ib_consistency import CHECK, OTHER_FABRIC
from commcheck.model import Finding, Host, Kind, Machine, Rail, Result, Status
from commcheck.peers import compare, placed


@pytest.fixture
def machine(rail: Rail) -> Machine:
    return Machine("gpu-01", "gpu-ib", rails=(replace(rail, link_layer="InfiniBand"),))


def test_what_is_compared(judged: Any, machine: Machine) -> None:
    answers = {"grep -rHsxv 0x0000": ("sysfs/port-ib-ndr.txt", 0)}
    measured = judged(CHECK, answers, machine=machine).verdict.measured
    assert (measured["sm_lid"], measured["pkeys"]) == (1, ["0x8001", "0xffff"])


def test_one_of_another_fabric_warns(judged: Any, machine: Machine) -> None:
    answers = {"grep -rHsxv 0x0000": ("sysfs/port-ib-ndr.txt", 0)}
    verdict = judged(CHECK, answers, machine=machine).verdict
    results = []
    for at, sm_lid in enumerate((1, 1, 9)):
        host = Host(f"gpu-{at}")
        said = replace(verdict, measured={**verdict.measured, "sm_lid": sm_lid})
        found = Finding(
            check=CHECK.id, host=host.name, subject="mlx5_0", verdict=placed(said, host, "gpu-ib")
        )
        results.append(Result(check=CHECK.id, host=host.name, findings=(found,)))
    worst = {each.host: each.worst.verdict for each in compare([CHECK], results)}
    assert [each.status for each in worst.values()] == [Status.PASS, Status.PASS, Status.WARN]
    assert worst["gpu-2"].cause is OTHER_FABRIC
    assert "LID 9, 2 of 3 peers have 1" in worst["gpu-2"].reason


def test_roce_has_none(judged: Any, rail: Rail) -> None:
    mixed = Machine("gpu-01", "gpu-ib", rails=(rail,))
    assert judged(CHECK, machine=mixed).verdict.kind is Kind.NOT_APPLICABLE


def test_unreadable(judged: Any, machine: Machine) -> None:
    answers = {"grep -rHsxv": ("garbage\n", 0)}
    assert judged(CHECK, answers, machine=machine).verdict.status is Status.ERROR

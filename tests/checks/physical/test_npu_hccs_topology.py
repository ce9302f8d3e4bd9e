"""physical.npu-hccs-topology"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.npu_hccs_topology import BROKEN, CHECK, Seen, judge
from commcheck.check import Nothing
from commcheck.formats.npu_smi import NpuTopo
from commcheck.model import Kind, Status, Verdict
from tests.checks.physical.npu_answers import TWO


def of(near: dict[str, str]) -> Verdict:
    """``near``: to whom each has HCCS; all else goes over PCIe."""
    links = tuple(
        (one, other, "HCCS" if other in near[one] else "PHB")
        for one in near
        for other in near
        if one != other
    )
    verdict = judge(Seen(NpuTopo(tuple(near), links)), TWO, Nothing(), Nothing())
    assert isinstance(verdict, Verdict)
    return verdict


@pytest.mark.parametrize(
    ("name", "status", "kind", "reason"),
    [
        ("topo-good", Status.PASS, Kind.NONE, "1 group of 8"),
        ("topo-degraded", Status.FAIL, Kind.NONE, "NPU2-NPU3 SYS, want HCCS"),
        ("topo-pcie-card", Status.SKIP, Kind.NOT_APPLICABLE, "PCIe cards"),
    ],
)
def test_recorded(judged: Any, name: str, status: Status, kind: Kind, reason: str) -> None:
    answers = {"npu-smi info -t topo": (f"npu-smi/{name}.txt", 0)}
    verdict = judged(CHECK, answers, machine=TWO).verdict
    assert (verdict.status, verdict.kind) == (status, kind)
    assert reason in verdict.reason


def test_two_groups_are_a_board_of_910a() -> None:
    assert of({"a": "b", "b": "a", "c": "d", "d": "c"}).status is Status.PASS


def test_one_that_is_cut_off_is_none() -> None:
    verdict = of({"a": "bc", "b": "ac", "c": "ab", "d": ""})
    assert (verdict.status, verdict.cause) == (Status.FAIL, BROKEN)
    assert "d apart from the others" in verdict.reason


def test_unreadable(judged: Any) -> None:
    answers = {"npu-smi info -t topo": ("NPU0 NPU1\n", 0)}
    assert judged(CHECK, answers, machine=TWO).verdict.status is Status.ERROR

"""physical.gpu-nic-affinity"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checks.physical.gpu_nic_affinity import ALL_FAR, CHECK, FAR
from commcheck.model import Kind, Machine, Rail, Status

RECORDED = Path(__file__).parents[2] / "recorded" / "nvidia-smi"
GOOD = (RECORDED / "topo-h100-good.txt").read_text()


@pytest.fixture
def machine(rail: Rail) -> Machine:
    rails = tuple(replace(rail, index=n, hca=f"mlx5_{n}") for n in range(8))
    return Machine("gpu-01", "gpu-roce", rails=rails)


def said(text: str, name: str = "NVIDIA H100 80GB HBM3") -> dict[str, tuple[str, int]]:
    gpu = f"GPU 0: {name} (UUID: GPU-00000001-1111-2222-3333-444444444440)\n"
    return {"nvidia-smi topo": (text, 0), "nvidia-smi -L": (gpu, 0)}


@pytest.mark.parametrize(
    "name", ["topo-h100-good.txt", "topo-a100-4nic-pxb.txt", "topo-nvlink-lost.txt"]
)
def test_near(judged: Any, machine: Machine, name: str) -> None:
    verdict = judged(CHECK, said(f"nvidia-smi/{name}"), machine=machine).verdict
    assert verdict.status is Status.PASS


def test_all_far_is_a_warning(judged: Any, machine: Machine) -> None:
    verdict = judged(CHECK, said("nvidia-smi/topo-nic-far.txt"), machine=machine).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, ALL_FAR)


def test_some_far_is_a_fail_and_a_warning_in_a_guest(judged: Any, machine: Machine) -> None:
    # mlx5_3 is no training NIC of this host: GPU3 has none at hand.
    fewer = replace(machine, rails=tuple(r for r in machine.rails if r.hca != "mlx5_3"))
    verdict = judged(CHECK, said(GOOD), machine=fewer).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, FAR)
    assert "1 of 8 GPUs have no NIC at PIX or PXB: GPU3 NODE" in verdict.reason
    guest = judged(CHECK, said(GOOD), machine=replace(fewer, in_vm=True)).verdict
    assert (guest.status, guest.cause) == (Status.WARN, ALL_FAR)


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_fewer_nics_than_could_be_near_all(judged: Any, machine: Machine, kept: int) -> None:
    """Eight GPUs with one or two NICs are built and sold: six have none beside them."""
    few = replace(machine, rails=machine.rails[:kept])
    verdict = judged(CHECK, said(GOOD), machine=few).verdict
    assert verdict.kind is Kind.NOT_APPLICABLE
    shared = "one NIC" if kept == 1 else f"{kept} NICs"
    assert f"8 GPUs share {shared}:" in verdict.reason
    half = replace(machine, rails=machine.rails[:4])
    assert judged(CHECK, said(GOOD), machine=half).verdict.cause is FAR
    strict = judged(CHECK, said(GOOD), machine=half, thresholds={"gpus_per_nic": 1}).verdict
    assert strict.kind is Kind.NOT_APPLICABLE


def test_grace_boards_are_not_judged(judged: Any, machine: Machine) -> None:
    answers = said("nvidia-smi/topo-nic-far.txt", "NVIDIA GH200 480GB")
    assert judged(CHECK, answers, machine=machine).verdict.kind is Kind.NOT_APPLICABLE


def test_no_training_nic_in_the_matrix_is_undecided(judged: Any, rail: Rail) -> None:
    other = Machine("gpu-01", "gpu-roce", rails=(replace(rail, hca="rdmap79s0"),))
    assert judged(CHECK, said(GOOD), machine=other).verdict.kind is Kind.UNDECIDABLE


def test_unreadable(judged: Any) -> None:
    assert judged(CHECK, said("garbage\n")).verdict.status is Status.ERROR

"""physical.nvlink-topology"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from checks.physical.nvlink_topology import CHECK, PAIR_LOST, Seen, judge
from commcheck.check import Nothing
from commcheck.formats.nvidia_smi_list import Gpu, GpuList
from commcheck.formats.nvidia_topo import NvidiaTopo
from commcheck.model import Kind, Machine, Status

ONE = Machine("gpu-01", "gpu-roce")


def listed(name: str = "NVIDIA H100 80GB HBM3", *, has_mig: bool = False) -> GpuList:
    gpus = tuple(Gpu(at, name, f"GPU-{at:08x}-1111-2222-3333-444444444440") for at in range(8))
    return GpuList(gpus, has_mig=has_mig)


def answers(topo: str) -> dict[str, tuple[str, int]]:
    lines = "".join(f"GPU {gpu.index}: {gpu.name} (UUID: {gpu.uuid})\n" for gpu in listed().gpus)
    return {
        "nvidia-smi topo": (f"nvidia-smi/topo-{topo}.txt", 0),
        "nvidia-smi -L": (lines, 0),
    }


@pytest.mark.parametrize(
    ("topo", "status", "says"),
    [
        ("h100-good", Status.PASS, "28 pairs of 8 GPUs, each NV18"),
        ("a100-4nic-pxb", Status.PASS, "each NV12"),
        ("nvlink-lost", Status.FAIL, "1 of 28 pairs of GPUs are not NV18: GPU3-GPU4 SYS"),
    ],
)
def test_recorded(judged: Any, topo: str, status: Status, says: str) -> None:
    verdict = judged(CHECK, answers(topo), machine=ONE).verdict
    assert (verdict.status, says in verdict.reason) == (status, True)
    if status is Status.FAIL:
        assert verdict.cause is PAIR_LOST


def matrix(words: dict[tuple[int, int], str], other: str, gpus: int = 4) -> NvidiaTopo:
    names = tuple(f"GPU{at}" for at in range(gpus))
    links = []
    for one, two in combinations(range(gpus), 2):
        word = words.get((one, two), other)
        links += [(names[one], names[two], word), (names[two], names[one], word)]
    return NvidiaTopo(names, (), tuple(links))


@pytest.mark.parametrize(
    ("topo", "gpus", "says"),
    [
        (matrix({}, "NODE"), listed("NVIDIA A10"), "by design"),
        (matrix({}, "NODE"), listed("NVIDIA H100"), "no NVLink"),
        (matrix({(0, 1): "NV12"}, "SYS"), listed("NVIDIA H100 NVL"), "by design"),
        (matrix({(0, 1): "NV2"}, "NV1"), listed("Tesla V100-SXM2-32GB"), "by design"),
        *[
            (matrix({(0, 1): "NV12", (2, 3): "NV12"}, "SYS"), listed(name), "by design")
            for name in (
                "NVIDIA A100 80GB PCIe",
                "NVIDIA A100-PCIE-40GB",
                "NVIDIA A30",
                "NVIDIA A40",
                "NVIDIA A100X",
                "NVIDIA A800 40GB Active",
                "NVIDIA RTX A6000",
                "Quadro GV100",
                "NVIDIA H200 NVL",
            )
        ],
        (matrix({}, "NV18"), listed(has_mig=True), "MIG"),
    ],
)
def test_healthy_though_odd(topo: NvidiaTopo, gpus: GpuList, says: str) -> None:
    verdict = judge(Seen(topo, gpus), ONE, Nothing(), Nothing())
    assert (verdict.kind, says in verdict.reason) == (Kind.NOT_APPLICABLE, True)


@pytest.mark.parametrize(
    "name",
    ["NVIDIA A100-SXM4-40GB", "NVIDIA A800-SXM4-80GB", "NVIDIA H20", "NVIDIA B200", "NVIDIA GB200"],
)
def test_boards_that_join_all_are_judged(name: str) -> None:
    verdict = judge(Seen(matrix({(0, 1): "SYS"}, "NV18"), listed(name)), ONE, Nothing(), Nothing())
    assert verdict.cause is PAIR_LOST


def test_most_pairs_lost_is_still_judged_by_the_best() -> None:
    topo = matrix({(0, 1): "NV18"}, "SYS")
    verdict = judge(Seen(topo, listed()), ONE, Nothing(), Nothing())
    assert "5 of 6 pairs of GPUs are not NV18" in verdict.reason


def test_fewer_links_on_a_pair() -> None:
    topo = matrix({(1, 2): "NV17"}, "NV18")
    verdict = judge(Seen(topo, listed()), ONE, Nothing(), Nothing())
    assert verdict.reason.endswith("not NV18: GPU1-GPU2 NV17")


@pytest.mark.parametrize(
    ("lost", "alone"),
    [
        ([(0, 2), (1, 2), (2, 3)], True),
        ([(0, 2)], False),
        ([(0, 2), (1, 2)], False),
        ([(0, 2), (1, 2), (2, 3), (0, 1)], False),
    ],
)
def test_one_gpu_alone(lost: list[tuple[int, int]], *, alone: bool) -> None:
    """As https://github.com/vllm-project/vllm/issues/16336 shows of a B200 board."""
    topo = matrix(dict.fromkeys(lost, "NODE"), "NV18")
    verdict = judge(Seen(topo, listed("NVIDIA B200")), ONE, Nothing(), Nothing())
    assert verdict.cause is PAIR_LOST
    assert verdict.reason.endswith("; all of them are GPU2's") == alone

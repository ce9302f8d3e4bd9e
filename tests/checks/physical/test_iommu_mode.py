"""physical.iommu-mode"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from checks.physical.iommu_mode import CHECK, TRANSLATES
from commcheck.model import Accelerator, Kind, Machine, Rail, Status


def said(types: str, name: str = "NVIDIA H100 80GB HBM3") -> dict[str, tuple[str, int]]:
    gpu = f"GPU 0: {name} (UUID: GPU-00000001-1111-2222-3333-444444444440)\n"
    return {
        "grep -rHs . /sys/kernel/iommu_groups": (f"sysfs/{types}", 0),
        "find /sys/kernel/iommu_groups": ("sysfs/iommu-devices.txt", 0),
        "nvidia-smi -L": (gpu, 0),
    }


def test_passes_through(judged: Any) -> None:
    assert judged(CHECK, said("iommu-types-pt.txt")).verdict.status is Status.PASS


def test_translates(judged: Any, rail: Rail) -> None:
    gpu = Accelerator(0, "nvidia", "0000:82:00.0")
    machine = Machine("gpu-01", "gpu-roce", rails=(rail,), accelerators=(gpu,))
    verdict = judged(CHECK, said("iommu-types-dma.txt"), machine=machine).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, TRANSLATES)
    assert "2 of 2 devices (mlx5_0 DMA-FQ, gpu0 DMA)" in verdict.reason


def test_what_is_not_on_pci_is_passed_over(judged: Any) -> None:
    folder = Path(__file__).parents[2] / "recorded" / "sysfs"
    group = (folder / "iommu-devices.txt").read_text().split("/iommu_groups/")[1].split("/")[0]
    more = [
        f"/sys/kernel/iommu_groups/{group}/devices/{name}\n"
        for name in ("83b8f4f2-509f-482f-9c1e-e6bfe0fa1001", "AMDI0095:00", "arm-smmu-v3.3.auto")
    ]
    devices = (folder / "iommu-devices.txt").read_text() + "".join(more)
    answers = said("iommu-types-pt.txt") | {"find /sys/kernel/iommu_groups": (devices, 0)}
    assert judged(CHECK, answers).verdict.status is Status.PASS


def test_off(judged: Any) -> None:
    missing = ("find: '/sys/kernel/iommu_groups': No such file or directory\n", 1)
    answers = {"grep -rHs . /sys/kernel": ("", 2), "find": missing}
    verdict = judged(CHECK, answers).verdict
    assert (verdict.status, "is off" in verdict.reason) == (Status.PASS, True)


def test_devices_in_no_group_are_undecided(judged: Any, rail: Rail) -> None:
    machine = Machine("gpu-01", "gpu-roce", rails=(replace(rail, pci="0000:99:00.0"),))
    verdict = judged(CHECK, said("iommu-types-dma.txt"), machine=machine).verdict
    assert verdict.kind is Kind.UNDECIDABLE


def test_guests_and_grace_are_not_judged(judged: Any, rail: Rail) -> None:
    guest = Machine("gpu-01", "gpu-roce", in_vm=True, rails=(rail,))
    answers = said("iommu-types-dma.txt")
    assert judged(CHECK, answers, machine=guest).verdict.kind is Kind.NOT_APPLICABLE
    grace = said("iommu-types-dma.txt", "NVIDIA GB200")
    assert judged(CHECK, grace).verdict.kind is Kind.NOT_APPLICABLE


def test_unreadable(judged: Any) -> None:
    find = "find /sys/kernel/iommu_groups"
    answers = said("iommu-types-pt.txt") | {find: ("garbage\n", 0)}
    assert judged(CHECK, answers).verdict.status is Status.ERROR

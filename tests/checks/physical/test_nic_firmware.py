"""Which cards are compared in what; who is odd is told by tests/test_peers.py."""

from __future__ import annotations

from checks.physical.nic_firmware import CHECK, FIRMWARE, OTHER_DRIVER
from commcheck.model import Kind
from tests.checks.conftest import Judge

GOOD = ("ibv_devinfo/roce-400g-good.txt", 0)
PATH = "/sys/class/infiniband/mlx5_0/device/driver/module/version"


def test_causes_belong_to_their_traits() -> None:
    assert [(each.name, each.cause) for each in CHECK.peers] == [
        ("firmware", FIRMWARE),
        ("driver_version", OTHER_DRIVER),
    ]
    assert {each.kin for each in CHECK.peers} == {"board"}


def test_vendor_driver(judged: Judge) -> None:
    answers = {"ibv_devinfo": GOOD, "grep": (f"{PATH}:24.10-1.1.4\n", 0)}
    verdict = judged(CHECK, answers).verdict
    assert verdict.kind is Kind.UNDECIDABLE
    assert verdict.measured == {
        "board": "MT_0000000838",
        "firmware": "28.39.2048",
        "hca": "mlx5_0",
        "pci": "0000:81:00.0",
        "driver_version": "24.10-1.1.4",
        "peers": "gpu-roce",
        "platform": "gpu-roce",
        "kernel_driver": "mlx5_core",
    }


def test_the_kernels_own_driver(judged: Judge) -> None:
    verdict = judged(CHECK, {"ibv_devinfo": GOOD, "grep": ("", 2)}).verdict
    assert verdict.measured["driver_version"] == "the kernel's own"


def test_unread_is_said(judged: Judge) -> None:
    assert judged(CHECK, {"ibv_devinfo": ("", 255)}).verdict.error == "CommandFailed"
    verdict = judged(CHECK, {"ibv_devinfo": GOOD, "grep": (f"{PATH}:24.10", 0)}).verdict
    assert "driver version" in str(verdict.measured["unread"])
    other = judged(CHECK, {"ibv_devinfo": ("ibv_devinfo/bnxt-good.txt", 0)})
    assert other.verdict.error == "Unjudgeable"

"""What of a host is compared; who is odd is told by tests/test_peers.py."""

from __future__ import annotations

from checks.physical.host_consistency import CHECK, OTHER_DRIVER, OTHER_NAMES
from commcheck.model import Machine
from tests.checks.conftest import Judge

GPU = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000000)\n"


def test_traits() -> None:
    assert [each.cause for each in CHECK.peers] == [OTHER_DRIVER, OTHER_NAMES]


def test_a_host_in_a_few_plain_values(judged: Judge) -> None:
    said = {"cat": ("nvidia-version/open-550.txt", 0), "nvidia-smi": (GPU, 0)}
    measured = judged(CHECK, said).verdict.measured
    assert measured["gpu"] == "NVIDIA H100 80GB HBM3"
    assert str(measured["gpu_driver"]).startswith("550.")
    assert measured["rail_names"] == ["mlx5_0=ens1np0"]


def test_a_host_without_rails_and_without_an_answer(judged: Judge) -> None:
    measured = judged(CHECK, machine=Machine("gpu-01", "gpu-roce")).verdict.measured
    assert "rail_names" not in measured
    assert "GPU driver" in str(measured["unread"])

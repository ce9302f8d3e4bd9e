"""physical.gpu-pcie"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.gpu_pcie import CHECK, GENERATION, LANES
from commcheck.model import Cause, Kind, Machine, Status

ONE = Machine("gpu-01", "gpu-roce")
HEADER = (
    "index, name, pci.bus_id, pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, "
    "pcie.link.width.max, utilization.gpu [%]\n"
)


def gpu(link: str) -> dict[str, tuple[str, int]]:
    return {"nvidia-smi --query": (f"{HEADER}0, NVIDIA H100, 00000000:1B:00.0, {link}\n", 0)}


@pytest.mark.parametrize("name", ["query-gpu-good.csv", "query-gpu-na.csv"])
def test_right(judged: Any, name: str) -> None:
    said = {"nvidia-smi --query": (f"nvidia-smi/{name}", 0)}
    verdict = judged(CHECK, said, machine=ONE).verdict
    assert (verdict.status, verdict.reason) == (Status.PASS, "8 GPUs with all their PCIe lanes")


def test_a_narrow_one_is_named_and_a_sleeping_one_is_not(judged: Any) -> None:
    said = {"nvidia-smi --query": ("nvidia-smi/query-gpu-width8-idlegen.csv", 0)}
    verdict = judged(CHECK, said, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, LANES)
    assert verdict.reason == "gpu3 (00000000:61:00.0) x8, want x16"
    assert verdict.remedies[0].command.startswith("nvidia-smi --query-gpu=index,name,")


@pytest.mark.parametrize(
    ("link", "status", "cause", "says"),
    [
        ("5, 5, 16, 16, 0 %", Status.PASS, None, "all their PCIe lanes"),
        ("1, 5, 16, 16, 0 %", Status.PASS, None, "of gpu0 not judged: no load"),
        ("1, 5, 16, 16, 9 %", Status.PASS, None, "not judged"),
        ("1, 5, 16, 16, [N/A]", Status.PASS, None, "not judged"),
        ("4, 5, 16, 16, 98 %", Status.FAIL, GENERATION, "generation 4 under load, want 5"),
        ("[N/A], 5, 16, 16, 98 %", Status.PASS, None, "all their PCIe lanes"),
        ("5, 5, 8, 16, 0 %", Status.FAIL, LANES, "x8, want x16"),
        ("1, 5, 8, 16, 98 %", Status.FAIL, LANES, "x8"),
        ("5, 5, 8, 8, 0 %", Status.PASS, None, "all their"),
    ],
)
def test_width_always_generation_under_load(
    judged: Any, link: str, status: Status, cause: Cause | None, says: str
) -> None:
    verdict = judged(CHECK, gpu(link), machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (status, cause)
    assert says in verdict.reason


def test_what_is_not_told_is_undecidable(judged: Any) -> None:
    verdict = judged(CHECK, gpu("5, 5, [N/A], 16, 0 %"), machine=ONE).verdict
    assert verdict.kind is Kind.UNDECIDABLE


@pytest.mark.parametrize(
    ("text", "rc", "error"),
    [
        ("nvidia-smi/command-not-found.txt", 127, "CommandMissing"),
        ('Field "pcie.link.gen.max" is not a valid field to query.\n', 2, "CommandFailed"),
        (HEADER, 0, "ParseError"),
    ],
)
def test_unreadable(judged: Any, text: str, rc: int, error: str) -> None:
    verdict = judged(CHECK, {"nvidia-smi --query": (text, rc)}, machine=ONE).verdict
    assert (verdict.status, verdict.error) == (Status.ERROR, error)

"""physical.gpu-driver"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.gpu_driver import CHECK, LOST, MISMATCH, MISSING, MORE, NO_DRIVER, NO_GPU
from commcheck.model import Accelerator, Cause, Machine, Status

LIST = {"nvidia-smi": ("nvidia-smi/nvlink-pcie-card.txt", 0)}  # two A10, the lines of -L


def machine(gpus: int) -> Machine:
    found = tuple(Accelerator(index, "nvidia") for index in range(gpus))
    return Machine("gpu-01", "gpu-roce", accelerators=found)


@pytest.mark.parametrize(
    ("on_pci", "declared", "status", "cause", "says"),
    [
        (2, None, Status.PASS, None, "2 GPUs: NVIDIA A10; their number is not declared"),
        (0, None, Status.PASS, None, "not declared"),
        (2, 2, Status.PASS, None, "2 GPUs: NVIDIA A10"),
        (8, 2, Status.PASS, None, "2 GPUs"),
        (8, None, Status.FAIL, MISSING, "2 GPUs, want 8: on PCI"),
        (2, 8, Status.FAIL, MISSING, "2 GPUs, want 8: the command line"),
        (2, 1, Status.WARN, MORE, "2 GPUs, want 1"),
    ],
)
def test_count(
    judged: Any, on_pci: int, declared: int | None, status: Status, cause: Cause | None, says: str
) -> None:
    verdict = judged(CHECK, LIST, machine=machine(on_pci), gpu_count=declared).verdict
    assert (verdict.status, verdict.cause) == (status, cause)
    assert says in verdict.reason
    assert verdict.measured == {"gpu_count": 2}


def test_a_pod_is_asked_for_what_it_was_given(judged: Any) -> None:
    pod = replace(machine(4), in_container=True)
    verdict = judged(CHECK, LIST, machine=pod).verdict
    assert (verdict.cause, verdict.reason) == (MISSING, "2 GPUs, want 4: given to this container")


@pytest.mark.parametrize(
    ("name", "rc", "cause"),
    [
        ("driver-mismatch.txt", 18, MISMATCH),
        ("no-driver.txt", 9, NO_DRIVER),
        ("no-devices.txt", 6, NO_GPU),
        ("gpu-lost.txt", 15, LOST),
        ("gpu-lost.txt", 0, LOST),
    ],
)
def test_broken(judged: Any, name: str, rc: int, cause: Cause) -> None:
    answers = {"nvidia-smi": (f"nvidia-smi/{name}", rc)}
    verdict = judged(CHECK, answers, machine=machine(8)).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, cause)


@pytest.mark.parametrize(
    ("text", "rc", "error"),
    [
        ("nvidia-smi/command-not-found.txt", 127, "CommandMissing"),
        ("Insufficient permissions\n", 4, "CommandFailed"),
        ("GPU 0: NVIDIA A10 (UUID: GPU-0000", 0, "ParseError"),
    ],
)
def test_what_cannot_be_read_is_no_fail(judged: Any, text: str, rc: int, error: str) -> None:
    verdict = judged(CHECK, {"nvidia-smi": (text, rc)}, machine=machine(8)).verdict
    assert (verdict.status, verdict.error) == (Status.ERROR, error)

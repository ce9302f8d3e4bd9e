"""physical.gpu-ecc"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checks.physical.gpu_ecc import (
    CHECK,
    ECC_OFF,
    SRAM,
    UNCORRECTED,
    WANTS_DOMAIN,
    WANTS_REBOOT,
    WANTS_RESET,
    Limits,
    Seen,
    judge,
)
from commcheck.check import Nothing, Unread
from commcheck.formats.nvidia_gpu import NvidiaGpu
from commcheck.formats.nvidia_recovery import RecoveryGpu
from commcheck.model import Cause, Kind, Machine, Status

ONE = Machine("gpu-01", "gpu-roce")
UNTOLD = Unread("not recorded", "CommandNotRun")


@pytest.mark.parametrize(
    ("name", "status", "kind"),
    [
        ("query-h100-590", Status.PASS, Kind.NONE),
        ("query-h100-requires-reset", Status.FAIL, Kind.NONE),
        ("query-guest", Status.SKIP, Kind.NOT_APPLICABLE),
    ],
)
def test_recorded(judged: Any, name: str, status: Status, kind: Kind) -> None:
    said = {"nvidia-smi --query-gpu": (f"gpu-health/{name}.txt", 0)}
    verdict = judged(CHECK, said, machine=ONE).verdict
    assert (verdict.status, verdict.kind) == (status, kind)


@pytest.mark.parametrize(
    ("gpu", "status", "cause"),
    [
        ({"ecc": True, "uncorrected": 0}, Status.PASS, None),
        ({"ecc": True, "uncorrected": 1}, Status.FAIL, UNCORRECTED),
        ({"ecc": True, "needs_reset": True}, Status.FAIL, WANTS_RESET),
        ({"ecc": False}, Status.WARN, ECC_OFF),
        ({"ecc": True}, Status.SKIP, None),
    ],
)
def test_one_gpu(gpu: dict[str, Any], status: Status, cause: Cause | None) -> None:
    gpus = (
        NvidiaGpu(0, "NVIDIA H100", "00000000:1b:00.0", ecc=True, uncorrected=0),
        NvidiaGpu(1, "NVIDIA H100", "00000000:43:00.0", **gpu),
    )
    verdict = judge(Seen(gpus, UNTOLD), ONE, Nothing(), Limits())
    assert (verdict.status, verdict.cause) == (status, cause)
    if cause is not None:
        assert "gpu1" in verdict.reason
        assert verdict.remedies[0].command.endswith(("-i 1", "-i 1"))


def test_the_limit_may_be_raised() -> None:
    gpus = (NvidiaGpu(0, "H100", "00000000:1b:00.0", ecc=True, uncorrected=1),)
    verdict = judge(Seen(gpus, UNTOLD), ONE, Nothing(), Limits(uncorrected=1))
    assert verdict.status is Status.PASS


WELL = (Path(__file__).parents[2] / "recorded" / "gpu-health" / "q-h100-well.txt").read_text()


def asking(word: str) -> str:
    """Of the second GPU the driver wants this."""
    head, line, tail = WELL.rpartition("GPU Recovery Action                                : None")
    return f"{head}{line.removesuffix('None')}{word}{tail}"


@pytest.mark.parametrize(
    ("text", "status", "cause", "says"),
    [
        ("gpu-health/q-h100-well.txt", Status.PASS, None, "on 8 GPUs"),
        ("gpu-health/q-h100-reset.txt", Status.FAIL, WANTS_RESET, "gpu1 (00000000:43:00.0) Reset"),
        ("gpu-health/q-h100-550.txt", Status.FAIL, WANTS_RESET, "Drain and Reset"),
        (asking("Drain P2P"), Status.FAIL, WANTS_RESET, "the driver asks for: gpu1"),
        (asking("Bus Reset"), Status.FAIL, WANTS_RESET, "Bus Reset"),
        (asking("Reboot"), Status.FAIL, WANTS_REBOOT, "gpu1 (00000000:43:00.0) Reboot"),
        (asking("Recover IMEX Domain"), Status.WARN, WANTS_DOMAIN, "Recover IMEX Domain"),
        ("gpu-health/q-h100-worn.txt", Status.FAIL, SRAM, "threshold: gpu1 (00000000:43:00.0)"),
        ("cut short", Status.PASS, None, "on 8 GPUs"),
    ],
)
def test_what_the_driver_asks_for(
    judged: Any, text: str, status: Status, cause: Cause | None, says: str
) -> None:
    answers = {
        "nvidia-smi --query-gpu": ("gpu-health/query-h100-590.txt", 0),
        "nvidia-smi -q": (text, 0),
    }
    verdict = judged(CHECK, answers, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (status, cause)
    assert says in verdict.reason


def test_the_most_comes_first() -> None:
    """A reboot resets the GPUs, too; errors come before the domain."""
    gpus = tuple(
        NvidiaGpu(at, "GB200", f"0000000{at}:01:00.0", ecc=True, uncorrected=at) for at in (0, 1)
    )
    words = ("Reset", "Reboot")
    recovery = tuple(RecoveryGpu(at, gpus[at].pci, word) for at, word in enumerate(words))
    verdict = judge(Seen(gpus, recovery), ONE, Nothing(), Limits())
    assert (verdict.cause, "gpu1" in verdict.reason) == (WANTS_REBOOT, True)
    domain = (RecoveryGpu(0, gpus[0].pci, "Recover IMEX Domain"),)
    assert judge(Seen(gpus, domain), ONE, Nothing(), Limits()).cause is UNCORRECTED

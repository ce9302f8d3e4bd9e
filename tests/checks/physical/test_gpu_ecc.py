"""physical.gpu-ecc"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.gpu_ecc import (
    CHECK,
    ECC_OFF,
    UNCORRECTED,
    WANTS_RESET,
    Limits,
    Seen,
    judge,
)
from commcheck.check import Nothing
from commcheck.formats.nvidia_gpu import NvidiaGpu
from commcheck.model import Cause, Kind, Machine, Status

ONE = Machine("gpu-01", "gpu-roce")


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
    verdict = judge(Seen(gpus), ONE, Nothing(), Limits())
    assert (verdict.status, verdict.cause) == (status, cause)
    if cause is not None:
        assert "gpu1" in verdict.reason
        assert verdict.remedies[0].command.endswith(("-i 1", "-i 1"))


def test_the_limit_may_be_raised() -> None:
    gpus = (NvidiaGpu(0, "H100", "00000000:1b:00.0", ecc=True, uncorrected=1),)
    verdict = judge(Seen(gpus), ONE, Nothing(), Limits(uncorrected=1))
    assert verdict.status is Status.PASS

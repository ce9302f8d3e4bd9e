"""physical.gpu-persistence"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.gpu_persistence import CHECK, OFF, Seen, judge
from commcheck.check import Nothing
from commcheck.formats.nvidia_gpu import NvidiaGpu
from commcheck.model import Cause, Machine, Status

ONE = Machine("gpu-01", "gpu-roce")


def test_on(judged: Any) -> None:
    said = {"nvidia-smi --query-gpu": ("gpu-health/query-h100-590.txt", 0)}
    verdict = judged(CHECK, said, machine=ONE).verdict
    assert (verdict.status, verdict.reason) == (Status.PASS, "persistence mode is on, 8 GPUs")


@pytest.mark.parametrize(
    ("mode", "status", "cause"), [(False, Status.WARN, OFF), (None, Status.SKIP, None)]
)
def test_else(mode: bool | None, status: Status, cause: Cause | None) -> None:
    gpus = (
        NvidiaGpu(0, "H100", "00000000:1b:00.0", persistence=True),
        NvidiaGpu(1, "H100", "00000000:43:00.0", persistence=mode),
    )
    verdict = judge(Seen(gpus), ONE, Nothing(), Nothing())
    assert (verdict.status, verdict.cause) == (status, cause)
    assert "gpu1" in verdict.reason
    assert "gpu0" not in verdict.reason

"""physical.gpu-throttle"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.gpu_throttle import (
    BEFORE,
    BRAKED,
    CHECK,
    HELD,
    HOT,
    SLOWED,
    Limits,
    Seen,
    judge,
)
from commcheck.check import Nothing, Unread
from commcheck.formats.nvidia_gpu import NvidiaGpu
from commcheck.model import Cause, Kind, Machine, Status

ONE = Machine("gpu-01", "gpu-roce")


@pytest.mark.parametrize(
    ("name", "status", "says"),
    [
        ("query-h100-590", Status.PASS, "none of 8 GPUs is slowed by heat"),
        ("query-a100-470", Status.PASS, "; 8 without load"),
        ("query-h100-hot", Status.FAIL, "slowed by heat: gpu5 (92 °C)"),
        ("query-guest", Status.SKIP, "does not tell why clocks are low: gpu0"),
    ],
)
def test_recorded(judged: Any, name: str, status: Status, says: str) -> None:
    said = {"nvidia-smi --query-gpu": (f"gpu-health/{name}.txt", 0)}
    verdict = judged(CHECK, said, machine=ONE).verdict
    assert verdict.status is status
    assert says in verdict.reason


@pytest.mark.parametrize(
    ("reasons", "load", "status", "cause"),
    [
        ((0x0, 0x0), 98, Status.PASS, None),
        ((0x4, 0x4), 98, Status.PASS, None),  # at the power limit, as every busy GPU
        ((0x1, 0x1), 0, Status.PASS, None),
        ((0x21, 0x1), 0, Status.PASS, None),  # idle: lowered anyhow
        ((0x20, 0x0), 98, Status.FAIL, HOT),
        ((0x48, 0x0), 98, Status.FAIL, HOT),
        ((0x41, 0x1), 0, Status.FAIL, HOT),  # hot without work is hot
        ((0x88, 0x0), 98, Status.FAIL, BRAKED),
        ((0x8, 0x0), 98, Status.WARN, SLOWED),
        ((0x9, 0x1), 0, Status.PASS, None),  # on its way to rest
        ((0x2, 0x0), 98, Status.WARN, HELD),
        ((0x2, 0x2), 98, Status.PASS, None),
        ((0x2, 0x0), 0, Status.PASS, None),
        ((None, 0x0), 98, Status.SKIP, None),
    ],
)
def test_reasons(
    reasons: tuple[int | None, ...], load: int, status: Status, cause: Cause | None
) -> None:
    gpus = tuple(
        NvidiaGpu(at, "NVIDIA H100", f"00000000:1{at}:00.0", load, slowed_by=reason)
        for at, reason in enumerate(reasons)
    )
    verdict = judge(Seen(gpus, Unread("not recorded", "CommandNotRun")), ONE, Nothing(), Limits())
    assert (verdict.status, verdict.cause) == (status, cause)
    assert (verdict.kind is Kind.UNDECIDABLE) == (status is Status.SKIP)


@pytest.mark.parametrize(
    ("name", "status", "says"),
    [
        ("q-h100-slowed", Status.WARN, "not now: gpu1 17 min by heat and 13 min by power brake"),
        ("q-h100-well", Status.PASS, "none of 8 GPUs"),
    ],
)
def test_before_this_visit(judged: Any, name: str, status: Status, says: str) -> None:
    said = {
        "nvidia-smi --query-gpu": ("gpu-health/query-h100-590.txt", 0),
        "nvidia-smi -q": (f"gpu-health/{name}.txt", 0),
    }
    verdict = judged(CHECK, said, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (status, BEFORE if status is Status.WARN else None)
    assert says in verdict.reason
    hot = said | {"nvidia-smi --query-gpu": ("gpu-health/query-h100-hot.txt", 0)}
    assert judged(CHECK, hot, machine=ONE).verdict.cause is HOT

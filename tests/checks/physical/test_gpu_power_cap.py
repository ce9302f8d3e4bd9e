"""physical.gpu-power-cap"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.gpu_power_cap import (
    CHECK,
    LOWERED,
    OVERRULED,
    UNEQUAL,
    Seen,
    Want,
    judge,
)
from commcheck.check import Nothing
from commcheck.formats.nvidia_gpu import NvidiaGpu
from commcheck.model import Cause, Kind, Machine, Origin, Status, Wanted

ONE = Machine("gpu-01", "gpu-roce")


@pytest.mark.parametrize(
    ("name", "says"),
    [("query-h100-590", "power limit 700 W on 8 GPUs"), ("query-a100-470", "400 W on 8 GPUs")],
)
def test_right(judged: Any, name: str, says: str) -> None:
    said = {"nvidia-smi --query-gpu": (f"gpu-health/{name}.txt", 0)}
    verdict = judged(CHECK, said, machine=ONE).verdict
    assert (verdict.status, says in verdict.reason) == (Status.PASS, True)


def test_a_guest_is_not_judged(judged: Any) -> None:
    said = {"nvidia-smi --query-gpu": ("gpu-health/query-guest.txt", 0)}
    assert judged(CHECK, said, machine=ONE).verdict.kind is Kind.NOT_APPLICABLE


def test_an_inventory_may_say_more(judged: Any) -> None:
    said = {"nvidia-smi --query-gpu": ("gpu-health/query-h100-590.txt", 0)}
    verdict = judged(CHECK, said, machine=ONE, gpu_power_watts=750).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, LOWERED)
    assert verdict.remedies[0].command == "nvidia-smi -pl 750"


@pytest.mark.parametrize(
    ("limits", "enforced", "declared", "status", "cause"),
    [
        ((700, 700), None, None, Status.PASS, None),
        ((700, 500), None, None, Status.FAIL, UNEQUAL),
        ((500, 500), None, None, Status.WARN, LOWERED),
        ((500, 500), None, 500, Status.PASS, None),
        ((500, 500), None, 600, Status.FAIL, LOWERED),
        ((700, 700), 350.0, None, Status.WARN, OVERRULED),
        ((700, 700), 699.6, None, Status.PASS, None),
        ((None, 700), None, None, Status.SKIP, None),
    ],
)
def test_limits(
    limits: tuple[float | None, ...],
    enforced: float | None,
    declared: int | None,
    status: Status,
    cause: Cause | None,
) -> None:
    gpus = tuple(
        NvidiaGpu(
            at,
            "NVIDIA H100",
            f"00000000:1{at}:00.0",
            limit_watts=limit,
            default_watts=700.0,
            enforced_watts=enforced,
        )
        for at, limit in enumerate(limits)
    )
    want = Want(Wanted(declared, Origin("group_vars/gpu.yml:3")))
    verdict = judge(Seen(gpus), ONE, want, Nothing())
    assert (verdict.status, verdict.cause) == (status, cause)


def test_two_models_in_a_host_have_two_limits() -> None:
    gpus = (
        NvidiaGpu(0, "A", "00000000:10:00.0", limit_watts=300.0, default_watts=300.0),
        NvidiaGpu(1, "B", "00000000:11:00.0", limit_watts=700.0, default_watts=700.0),
    )
    verdict = judge(Seen(gpus), ONE, Want(Wanted(None, Origin("default"))), Nothing())
    assert verdict.status is Status.PASS

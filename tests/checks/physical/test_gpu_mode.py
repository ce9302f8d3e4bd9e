"""physical.gpu-mode"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.gpu_mode import CHECK, PROHIBITED, SPLIT, SPLIT_SOME, Seen, judge
from commcheck.check import Nothing
from commcheck.formats.nvidia_gpu import NvidiaGpu
from commcheck.model import Cause, Machine, Status

ONE = Machine("gpu-01", "gpu-roce")


def test_right(judged: Any) -> None:
    said = {"nvidia-smi --query-gpu": ("gpu-health/query-h100-590.txt", 0)}
    verdict = judged(CHECK, said, machine=ONE).verdict
    assert (verdict.status, verdict.reason) == (
        Status.PASS,
        "8 GPUs whole, compute mode Default",
    )


@pytest.mark.parametrize(
    ("modes", "mig", "status", "cause"),
    [
        (("Default", "Default"), (None, None), Status.PASS, None),
        (("Exclusive_Process", "Exclusive_Process"), (False, False), Status.PASS, None),
        (("Default", "Prohibited"), (False, False), Status.FAIL, PROHIBITED),
        (("Default", "Default"), (True, True), Status.WARN, SPLIT),
        (("Default", "Default"), (False, True), Status.FAIL, SPLIT_SOME),
        (("Default", None), (False, False), Status.SKIP, None),
    ],
)
def test_modes(
    modes: tuple[str | None, ...],
    mig: tuple[bool | None, ...],
    status: Status,
    cause: Cause | None,
) -> None:
    gpus = tuple(
        NvidiaGpu(at, "H100", f"00000000:1{at}:00.0", compute_mode=mode, mig=split)
        for at, (mode, split) in enumerate(zip(modes, mig, strict=True))
    )
    verdict = judge(Seen(gpus), ONE, Nothing(), Nothing())
    assert (verdict.status, verdict.cause) == (status, cause)

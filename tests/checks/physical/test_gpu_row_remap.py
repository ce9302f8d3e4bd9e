"""physical.gpu-row-remap"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from checks.physical.gpu_row_remap import CHECK, FAILED, PENDING
from commcheck.model import Cause, Kind, Machine, Status

ONE = Machine("gpu-01", "gpu-roce")


@pytest.mark.parametrize(
    ("rows", "query", "status", "cause", "says"),
    [
        ("good", "h100-590", Status.PASS, None, "; 1 rows were replaced before"),
        ("pending", "h100-590", Status.WARN, PENDING, "gpu1 (00000000:43:00.0)"),
        ("failed", "h100-590", Status.FAIL, FAILED, "no spare row of memory is left: gpu6"),
        ("mig", "h100-590", Status.SKIP, None, "or the driver tells nothing of them"),
        ("none", "v100-450", Status.PASS, None, "waits on 4 GPUs"),
        ("none", "guest", Status.SKIP, None, "no spare rows"),
    ],
)
def test_recorded(
    judged: Any, rows: str, query: str, status: Status, cause: Cause | None, says: str
) -> None:
    said = {
        "nvidia-smi --query-remapped-rows": (f"gpu-health/remap-{rows}.txt", 0),
        "nvidia-smi --query-gpu": (f"gpu-health/query-{query}.txt", 0),
    }
    verdict = judged(CHECK, said, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (status, cause)
    assert says in verdict.reason


def test_a_pending_page_of_an_older_gpu(judged: Any) -> None:
    said = {
        "nvidia-smi --query-remapped-rows": ("gpu-health/remap-none.txt", 0),
        "nvidia-smi --query-gpu": (_v100().replace(", 0, No, ", ", 0, Yes, ", 1), 0),
    }
    verdict = judged(CHECK, said, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, PENDING)
    assert verdict.remedies[0].command == "nvidia-smi -r -i 00000000:1b:00.0"


def _v100() -> str:
    folder = Path(__file__).parents[2] / "recorded" / "gpu-health"
    return (folder / "query-v100-450.txt").read_text()


def test_what_is_repaired_beside_rows(judged: Any) -> None:
    said = {
        "nvidia-smi --query-remapped-rows": ("gpu-health/remap-good.txt", 0),
        "nvidia-smi --query-gpu": ("gpu-health/query-h100-590.txt", 0),
        "nvidia-smi -q": ("gpu-health/q-h100-worn.txt", 0),
    }
    verdict = judged(CHECK, said, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, FAILED)
    assert "unrepairable: gpu1 (00000000:43:00.0)" in verdict.reason
    folder = Path(__file__).parents[2] / "recorded" / "gpu-health"
    worn = (folder / "q-h100-worn.txt").read_text()
    mild = re.sub(r"(Unrepairable Memory +): Yes", r"\1: No", worn)
    verdict = judged(CHECK, said | {"nvidia-smi -q": (mild, 0)}, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, PENDING)
    assert verdict.reason.endswith("reset: gpu0 (00000000:1b:00.0) memory channel")


def test_some_untold_with_mig(judged: Any) -> None:
    said = {"nvidia-smi --query-remapped-rows": ("gpu-health/remap-good.txt", 0)}
    verdict = judged(CHECK, said, machine=ONE).verdict
    assert verdict.status is Status.PASS  # the names are a help, not a need
    mig = _v100().replace("[N/A], Enabled", "Enabled, Enabled").replace(", 0, No, ", ", 0, [N/A], ")
    said = {
        "nvidia-smi --query-remapped-rows": ("gpu-health/remap-mig.txt", 0),
        "nvidia-smi --query-gpu": (mig, 0),
    }
    assert judged(CHECK, said, machine=ONE).verdict.kind is Kind.UNDECIDABLE

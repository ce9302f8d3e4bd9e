"""physical.gpu-confidential"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.gpu_confidential import CHECK, ON
from commcheck.model import Cause, Kind, Machine, Status

ONE = Machine("gpu-01", "gpu-roce")


@pytest.mark.parametrize(
    ("text", "rc", "status", "kind", "cause"),
    [
        ("gpu-health/fabric-h100.txt", 0, Status.PASS, Kind.NONE, None),
        ("gpu-health/fabric-confidential.txt", 0, Status.WARN, Kind.NONE, ON),
        ("gpu-health/fabric-old-driver.txt", 2, Status.SKIP, Kind.NOT_APPLICABLE, None),
        ("nvidia-smi: not found\n", 127, Status.SKIP, Kind.UNDECIDABLE, None),
    ],
)
def test_recorded(
    judged: Any, text: str, rc: int, status: Status, kind: Kind, cause: Cause | None
) -> None:
    verdict = judged(CHECK, {"nvidia-smi --query-gpu": (text, rc)}, machine=ONE).verdict
    assert (verdict.status, verdict.kind, verdict.cause) == (status, kind, cause)

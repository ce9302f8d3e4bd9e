"""physical.cpu-governor"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.cpu_governor import CHECK, SAVING
from commcheck.model import Kind, Machine, Status

ONE = Machine("gpu-01", "gpu-roce")


@pytest.mark.parametrize(
    ("text", "status", "kind"),
    [
        ("host-health/governor-performance.txt", Status.PASS, Kind.NONE),
        ("host-health/governor-mixed.txt", Status.WARN, Kind.NONE),
        ("", Status.SKIP, Kind.NOT_APPLICABLE),
    ],
)
def test_governors(judged: Any, text: str, status: Status, kind: Kind) -> None:
    verdict = judged(CHECK, {"grep": (text, 0 if text else 2)}, machine=ONE).verdict
    assert (verdict.status, verdict.kind) == (status, kind)
    if status is Status.WARN:
        assert verdict.cause is SAVING
        assert verdict.reason == "CPU governor performance, powersave, want performance"

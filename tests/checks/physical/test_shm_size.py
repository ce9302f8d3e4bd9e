"""physical.shm-size"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.shm_size import CHECK, FULL, SMALL
from commcheck.model import Cause, Machine, Status

ONE = Machine("gpu-01", "gpu-roce")


@pytest.mark.parametrize(
    ("name", "status", "cause", "says"),
    [
        ("good", Status.PASS, None, "/dev/shm has 1031847 of 1031864 MiB free"),
        ("full", Status.FAIL, FULL, "has 11 of 1031864 MiB free, want 64"),
        ("container", Status.WARN, SMALL, "has 64 MiB, want 1024 where jobs run"),
        ("on-root", Status.PASS, None, "/dev/shm (part of /) has"),
    ],
)
def test_recorded(judged: Any, name: str, status: Status, cause: Cause | None, says: str) -> None:
    said = {"df -Pk": (f"host-health/df-shm-{name}.txt", 0)}
    verdict = judged(CHECK, said, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (status, cause)
    assert says in verdict.reason


def test_a_machine_without_it(judged: Any) -> None:
    missing = ("df: /dev/shm: No such file or directory\n", 1)
    verdict = judged(CHECK, {"df": missing}, machine=ONE).verdict
    assert (verdict.status, verdict.error) == (Status.ERROR, "CommandFailed")

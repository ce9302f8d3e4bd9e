"""physical.npu-fec"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.npu_fec import CHECK, OFF
from commcheck.model import Cause
from tests.checks.physical.npu_answers import BUSY, ONE, told


@pytest.mark.parametrize(
    ("fec", "speed", "cause"),
    [
        ("fec", "speed-200g", None),
        ("fec-none", "speed-200g", OFF),
        ("fec-none", "speed-100g", OFF),
        ("fec-none", BUSY, OFF),
        ("fec-none", "Speed: 25000 Mb/s", None),
        ("fec mode: base FEC mode", "speed-200g", OFF),
    ],
)
def test_each(judged: Any, fec: str, speed: str, cause: Cause | None) -> None:
    answers = {"hccn_tool -i N -fec": told(fec), "hccn_tool -i N -speed": told(speed)}
    verdict = judged(CHECK, answers, machine=ONE).verdict
    assert (verdict.cause, verdict.status.value) == (cause, "fail" if cause else "pass")


def test_unreadable(judged: Any) -> None:
    answers = {"hccn_tool -i N -fec": told("fec: yes")}
    assert judged(CHECK, answers, machine=ONE).verdict.status.value == "error"

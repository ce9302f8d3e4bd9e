"""physical.npu-optics"""

from __future__ import annotations

import re
from typing import Any

import pytest

from checks.physical.npu_optics import ABSENT, CHECK, DARK, FLAGGED, HOT
from commcheck.model import Cause, Kind, Status
from tests.checks.physical.npu_answers import ONE, RECORDED, told

GOOD = RECORDED["optical-good"].rstrip("\n")


@pytest.mark.parametrize(
    ("text", "status", "cause", "reason"),
    [
        (GOOD, Status.PASS, None, "1.0189 mW on its darkest lane"),
        ("optical-low-rx-lane1", Status.FAIL, DARK, "lane 1 receives 0.0054 mW, want 0.1445"),
        ("optical-absent", Status.FAIL, ABSENT, "is not there"),
        ("optical-unreachable", Status.FAIL, ABSENT, "does not answer"),
        (
            GOOD.replace("temperature          : 47", "temperature          : 71"),
            Status.FAIL,
            HOT,
            "71 C, want at most 70",
        ),
        (
            GOOD.replace("Tx Los Flag          : 0x0", "Tx Los Flag          : 0x4"),
            Status.WARN,
            FLAGGED,
            "Tx Los Flag of lane 2",
        ),
        (
            GOOD.replace("Tx Power3            : 1.3968", "Tx Power3            : 9.0"),
            Status.FAIL,
            DARK,
            "lane 3 sends 9 mW",
        ),
    ],
)
def test_each(judged: Any, text: str, status: Status, cause: Cause | None, reason: str) -> None:
    verdict = judged(CHECK, {"hccn_tool -i N -optical": told(text)}, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (status, cause)
    assert reason in verdict.reason


def test_copper(judged: Any) -> None:
    answers = {"hccn_tool -i N -optical": told("optical-copper")}
    verdict = judged(CHECK, answers, machine=ONE).verdict
    assert (verdict.kind, "copper" in verdict.reason) == (Kind.NOT_APPLICABLE, True)


@pytest.mark.parametrize(
    "form", [r"([TR]x Power\d)( *): .*", r"(Rx Power\d)( *): .*", r"(Rx Power3)( *): .*"]
)
@pytest.mark.parametrize("said", ["get failed", "NA"])
def test_powers_that_could_not_be_read_are_not_those_of_copper(
    judged: Any, form: str, said: str
) -> None:
    text = re.sub(form, rf"\1\2: {said}", GOOD)
    assert text != GOOD
    verdict = judged(CHECK, {"hccn_tool -i N -optical": told(text)}, machine=ONE).verdict
    is_copper = said == "NA" and "[TR]" in form
    assert (verdict.status is Status.ERROR) is not is_copper
    assert (verdict.kind is Kind.NOT_APPLICABLE) is is_copper


def test_unreadable(judged: Any) -> None:
    cut = GOOD[: GOOD.index("RxPower Low")].rstrip("\n")
    answers = {"hccn_tool -i N -optical": told(cut)}
    assert judged(CHECK, answers, machine=ONE).verdict.status is Status.ERROR

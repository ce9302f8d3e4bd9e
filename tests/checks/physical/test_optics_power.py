"""physical.optics-power"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checks.physical.optics_power import CHECK, DARK, FAULT, FLAGGED, HOT
from commcheck.model import Cause, Kind, Status

GOOD = (Path(__file__).parents[2] / "recorded" / "ethtool" / "module-good.txt").read_text()


def said(text: str, rc: int = 0) -> dict[str, tuple[str, int]]:
    return {"ethtool -m": (text, rc)}


@pytest.mark.parametrize("name", ["module-good.txt", "module-qsfp28-old-layout.txt"])
def test_fine(judged: Any, name: str) -> None:
    assert judged(CHECK, said(f"ethtool/{name}")).verdict.status is Status.PASS


@pytest.mark.parametrize(
    ("name", "cause", "words"),
    [
        ("module-dead-lane.txt", DARK, "lane 2 at -40 dBm, want at least -10 dBm"),
        ("module-dark-inf.txt", DARK, "no light on lane 1, 2, 3, 4"),
        ("module-hot.txt", HOT, "84.11 C"),
        ("module-fault.txt", FAULT, "ModuleFault: TEC runaway"),
    ],
)
def test_wrong(judged: Any, name: str, cause: Cause, words: str) -> None:
    verdict = judged(CHECK, said(f"ethtool/{name}")).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, cause)
    assert words in verdict.reason


def test_a_flag_alone_is_a_warning(judged: Any) -> None:
    """ethtool 6.1 shows the flags of a CMIS lane one lane too late."""
    old = "Laser rx power low alarm    (Channel 2)   : Off"
    assert old in GOOD
    verdict = judged(CHECK, said(GOOD.replace(old, old.replace("Off", "On")))).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, FLAGGED)


def test_the_modules_own_threshold_counts(judged: Any) -> None:
    line = "\tLaser rx power low alarm threshold        : 1.0500 mW / 0.21 dBm\n"
    assert judged(CHECK, said(GOOD + line)).verdict.cause is DARK
    line = "\tModule temperature high warning threshold : 52.00 degrees C / 125.60 degrees F\n"
    hot = judged(CHECK, said(GOOD + line)).verdict
    assert hot.cause is HOT
    assert "52.03 C, want at most 52" in hot.reason


def test_a_lane_far_below_the_others(judged: Any) -> None:
    weak = GOOD.replace("1.0433 mW / 0.18 dBm", "0.2000 mW / -6.99 dBm")
    assert judged(CHECK, said(weak)).verdict.status is Status.PASS
    flag = "Laser rx power low alarm    (Channel 3)   : "
    assert judged(CHECK, said(weak.replace(f"{flag}Off", f"{flag}On"))).verdict.cause is DARK


def test_copper_and_an_empty_cage(judged: Any) -> None:
    copper = "".join(
        line
        for line in GOOD.splitlines(keepends=True)
        if "optical power" not in line and "bias" not in line
    )
    assert judged(CHECK, said(copper)).verdict.kind is Kind.NOT_APPLICABLE
    empty = judged(CHECK, said("ethtool/module-absent.txt", 1)).verdict
    assert empty.kind is Kind.NOT_APPLICABLE


def test_without_root_it_is_no_pass(judged: Any) -> None:
    denied = "netlink error: Operation not permitted\n"
    assert judged(CHECK, said(denied, 1)).verdict.error == "CommandFailed"

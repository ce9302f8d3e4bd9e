"""physical.pause-global-off"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.pause_global_off import CHECK, OFF, ON
from commcheck.model import Cause, Kind, Machine, Rail, Status

PASS, FAIL = Status.PASS, Status.FAIL


def said(name: str, rc: int = 0) -> dict[str, tuple[str, int]]:
    return {"ethtool -a": (f"ethtool/{name}", rc)}


@pytest.mark.parametrize(
    ("name", "flow_control", "status", "cause"),
    [
        ("pause-off.txt", "pfc", PASS, None),
        ("pause-off.json", "pfc", PASS, None),
        ("pause-with-stats.txt", "pfc", PASS, None),
        ("pause-global-on.txt", "pfc", FAIL, ON),
        ("pause-negotiated.txt", "pfc", FAIL, ON),
        ("pause-off.txt", "global", FAIL, OFF),
        ("pause-global-on.txt", "global", PASS, None),
    ],
)
def test_pause(
    judged: Any, name: str, flow_control: str, status: Status, cause: Cause | None
) -> None:
    verdict = judged(CHECK, said(name), flow_control=flow_control).verdict
    assert (verdict.status, verdict.cause) == (status, cause)
    if cause:
        switch = "off" if cause is ON else "on"
        command = f"ethtool -A ens1np0 autoneg off rx {switch} tx {switch}"
        assert verdict.remedies[0].command == command


def test_one_direction_is_enough_to_fail(judged: Any) -> None:
    text = "Pause parameters for a:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\toff\n\n"
    verdict = judged(CHECK, {"ethtool -a": (text, 0)}).verdict
    assert verdict.cause is ON
    assert "rx on, tx off, want both off" in verdict.reason
    assert judged(CHECK, {"ethtool -a": (text, 0)}, flow_control="global").verdict.cause is OFF


def test_not_judged(judged: Any) -> None:
    lossy = judged(CHECK, said("pause-global-on.txt"), flow_control="none").verdict
    assert lossy.kind is Kind.NOT_APPLICABLE
    assert judged(CHECK, said("pause-not-supported.txt", 1)).verdict.kind is Kind.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("name", "rc", "error"),
    [
        ("command-not-found.txt", 127, "CommandMissing"),
        ("no-such-device.txt", 75, "CommandFailed"),
        ("link-400g-good.txt", 0, "ParseError"),
    ],
)
def test_unreadable(judged: Any, name: str, rc: int, error: str) -> None:
    verdict = judged(CHECK, said(name, rc)).verdict
    assert (verdict.status, verdict.error) == (Status.ERROR, error)


@pytest.mark.parametrize("change", [{"is_vf": True}, {"link_layer": "InfiniBand"}])
def test_not_its_business(judged: Any, rail: Rail, change: dict[str, Any]) -> None:
    machine = Machine("gpu-01", "gpu-roce", rails=(replace(rail, **change),))
    assert judged(CHECK, machine=machine).verdict.kind is Kind.NOT_APPLICABLE

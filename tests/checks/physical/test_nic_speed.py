"""physical.nic-speed"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.nic_speed import CHECK, NOT_OFFERED, TOO_SLOW
from commcheck.model import Cause, Kind, Machine, Rail, Status

PASS, FAIL, SKIP = Status.PASS, Status.FAIL, Status.SKIP


@pytest.mark.parametrize(
    ("name", "declared", "status", "cause"),
    [
        ("link-400g-good.txt", 400, PASS, None),
        ("link-400g-good.txt", None, PASS, None),
        ("link-400g-nonroot.txt", 400, PASS, None),
        ("link-400g-good.txt", 200, PASS, None),  # more than declared
        ("link-400g-good.txt", 800, FAIL, NOT_OFFERED),
        ("link-100g-on-400g-port.txt", 400, FAIL, TOO_SLOW),
        ("link-100g-on-400g-port.txt", 200, FAIL, TOO_SLOW),  # it could do more
        ("link-100g-on-400g-port.txt", 100, PASS, None),
        ("link-100g-on-400g-port.txt", None, SKIP, None),
        ("link-200g-bnxt.txt", 400, FAIL, TOO_SLOW),
        ("link-200g-bnxt.txt", 200, PASS, None),
        ("link-200g-bnxt.txt", None, SKIP, None),
        ("link-old-ioctl-layout.txt", 100, PASS, None),
        ("link-old-ioctl-layout.txt", None, PASS, None),
    ],
)
def test_speed(
    judged: Any, name: str, declared: int | None, status: Status, cause: Cause | None
) -> None:
    said = {"ethtool": (f"ethtool/{name}", 0)}
    verdict = judged(CHECK, said, line_rate_gbits=declared).verdict
    assert (verdict.status, verdict.cause) == (status, cause)
    if status is SKIP:
        assert verdict.kind is Kind.UNDECIDABLE
        assert "declare commcheck_line_rate_gbits" in verdict.reason


def test_what_is_said_of_a_slow_port(judged: Any) -> None:
    said = {"ethtool": ("ethtool/link-100g-on-400g-port.txt", 0)}
    verdict = judged(CHECK, said, line_rate_gbits=400).verdict
    assert verdict.reason.startswith("mlx5_0 (ens3np0) runs at 100 Gb/s, want 400")
    assert verdict.measured == {"speed_gbits": 100}
    assert [remedy.command for remedy in verdict.remedies] == [
        "ethtool ens3np0",
        "",
        "ethtool -s ens3np0 speed 400000 autoneg on",
    ]


@pytest.mark.parametrize("declared", [None, 400])
def test_a_speed_that_is_not_told_is_not_zero(judged: Any, declared: int | None) -> None:
    said = "Settings for eth0:\n\tSpeed: Unknown!\n\tLink detected: yes\n"
    verdict = judged(CHECK, {"ethtool": (said, 0)}, line_rate_gbits=declared).verdict
    assert verdict.kind is Kind.UNDECIDABLE


def test_without_modes_and_declaration_nothing_is_known(judged: Any) -> None:
    said = "Settings for eth0:\n\tSpeed: 100000Mb/s\n\tLink detected: yes\n"
    assert judged(CHECK, {"ethtool": (said, 0)}).verdict.kind is Kind.UNDECIDABLE
    verdict = judged(CHECK, {"ethtool": (said, 0)}, line_rate_gbits=400).verdict
    assert verdict.cause is TOO_SLOW


@pytest.mark.parametrize(
    ("text", "rc", "error"),
    [
        ("ethtool/command-not-found.txt", 127, "CommandMissing"),
        ("ethtool/no-such-device.txt", 75, "CommandFailed"),
        ("Settings for ens1np0:\n\tSpe", 0, "ParseError"),
    ],
)
def test_unreadable(judged: Any, text: str, rc: int, error: str) -> None:
    verdict = judged(CHECK, {"ethtool": (text, rc)}, line_rate_gbits=400).verdict
    assert (verdict.status, verdict.error) == (Status.ERROR, error)


@pytest.mark.parametrize("change", [{"is_vf": True}, {"link_layer": "InfiniBand"}])
def test_not_its_business(judged: Any, rail: Rail, change: dict[str, Any]) -> None:
    machine = Machine("gpu-01", "gpu-roce", rails=(replace(rail, **change),))
    assert judged(CHECK, machine=machine).verdict.kind is Kind.NOT_APPLICABLE


def test_a_port_that_cannot_says_what_it_offers(judged: Any) -> None:
    verdict = judged(
        CHECK, {"ethtool": ("ethtool/link-400g-good.txt", 0)}, line_rate_gbits=800
    ).verdict
    assert "runs at 400 Gb/s and offers 400 at most, want 800" in verdict.reason

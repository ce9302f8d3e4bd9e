"""physical.nic-mtu"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.nic_mtu import BELOW_DECLARED, CHECK, TOO_SMALL
from commcheck.model import Cause, Kind, Machine, Rail, Status

PASS, WARN, FAIL = Status.PASS, Status.WARN, Status.FAIL


@pytest.mark.parametrize(
    ("mtu", "declared", "status", "cause"),
    [
        (9000, None, PASS, None),
        (4200, None, PASS, None),
        (4192, None, WARN, BELOW_DECLARED),
        (4191, None, FAIL, TOO_SMALL),
        (1500, None, FAIL, TOO_SMALL),
        (4200, 9000, WARN, BELOW_DECLARED),
        (9000, 9000, PASS, None),
        (1500, 1500, PASS, None),  # declared on purpose
        (1400, 1500, FAIL, TOO_SMALL),
    ],
)
def test_mtu(
    judged: Any, mtu: int, declared: int | None, status: Status, cause: Cause | None
) -> None:
    verdict = judged(CHECK, {"cat": (f"{mtu}\n", 0)}, mtu=declared).verdict
    assert (verdict.status, verdict.cause) == (status, cause)
    assert verdict.measured == {"mtu_bytes": mtu}
    if cause:
        assert verdict.remedies[0].command == f"ip link set ens1np0 mtu {declared or 4200}"


def test_unreadable(judged: Any) -> None:
    assert judged(CHECK, {"cat": ("900", 0)}).verdict.error == "ParseError"
    gone = ("cat: /sys/class/net/ens1np0/mtu: No such file or directory\n", 1)
    assert judged(CHECK, {"cat": gone}).verdict.error == "CommandFailed"


def test_a_wrong_expectation_is_an_error_not_a_fail(judged: Any) -> None:
    verdict = judged(CHECK, {"cat": ("9000\n", 0)}, mtu=90000).verdict
    assert verdict.status is Status.ERROR


def test_ipoib_is_none_of_its_business(judged: Any, rail: Rail) -> None:
    machine = Machine("gpu-01", "gpu-roce", rails=(replace(rail, link_layer="InfiniBand"),))
    assert judged(CHECK, machine=machine).verdict.kind is Kind.NOT_APPLICABLE

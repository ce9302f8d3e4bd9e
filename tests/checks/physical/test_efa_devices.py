"""physical.efa-devices"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.efa_devices import CHECK, FEWER, NO_PROVIDER, SOME
from commcheck.model import Cause, Machine, Rail, Status


def host(*names: str) -> Machine:
    rails = [Rail(n, name, driver="efa", state="ACTIVE") for n, name in enumerate(names)]
    return Machine("p5-01", "gpu-efa", rails=tuple(rails))


FOUR = host("rdmap79s0", "rdmap80s0", "rdmap81s0", "rdmap82s0")
GOOD = ("efa/fi_info-good.txt", 0)
NONE = ("efa/fi_info-none.txt", 61)


@pytest.mark.parametrize(
    ("said", "machine", "count", "status", "cause", "reason"),
    [
        (GOOD, FOUR, None, Status.PASS, None, "opens 4 EFA devices"),
        (GOOD, FOUR, 4, Status.PASS, None, "opens 4"),
        (GOOD, FOUR, 32, Status.FAIL, FEWER, "4 EFA devices, want 32"),
        (GOOD, host("rdmap79s0", "rdmap90s0"), None, Status.FAIL, SOME, "not open rdmap90s0"),
        (NONE, FOUR, None, Status.FAIL, NO_PROVIDER, "no EFA device, sysfs has 4"),
        (("garbage\n", 0), FOUR, None, Status.ERROR, None, "cannot read"),
        (("fi_info: not found\n", 127), FOUR, None, Status.ERROR, None, "fi_info"),
    ],
)
def test_judge(
    judged: Any,
    said: tuple[str, int],
    machine: Machine,
    count: int | None,
    status: Status,
    cause: Cause | None,
    reason: str,
) -> None:
    verdict = judged(CHECK, {"fi_info": said}, machine=machine, efa_count=count).verdict
    assert (verdict.status, verdict.cause) == (status, cause), verdict.reason
    assert reason in verdict.reason

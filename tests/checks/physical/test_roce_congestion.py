"""Much congestion, and congestion that nobody signals."""

from __future__ import annotations

import pytest

from checks.physical.roce_congestion import CHECK, CONGESTED, SILENT, Limits, Seen, judge
from commcheck.check import Nothing, Unread
from commcheck.model import Cause, Rail, Status
from tests.checks.conftest import Judge, Watch

NONE = Unread("not there", "CommandMissing")
PAUSE = "rx_prio3_pause_duration"


@pytest.mark.parametrize(
    ("cnp", "added", "paused_us", "status", "cause"),
    [
        (1203, 0, 0, Status.PASS, None),
        (99_120_331, 400_000, 0, Status.WARN, CONGESTED),
        (99_120_331, 50_000, 5_000_000, Status.PASS, None),
        (0, 0, 0, Status.PASS, None),
        (0, 0, 3_000_000, Status.WARN, SILENT),
        (5, 0, 3_000_000, Status.PASS, None),
    ],
)
def test_judge(
    watched: Watch,
    rail: Rail,
    cnp: int,
    added: int,
    paused_us: int,
    status: Status,
    cause: Cause | None,
) -> None:
    rdma = watched({"rp_cnp_handled": cnp, "np_cnp_sent": 0}, {"rp_cnp_handled": added})
    seen = Seen(rdma, watched({PAUSE: 10**9}, {PAUSE: paused_us}))
    verdict = judge(seen, rail, Nothing(), Limits())
    assert (verdict.status, verdict.cause) == (status, cause)


def test_without_pause_counters(watched: Watch, rail: Rail) -> None:
    seen = Seen(watched({"rp_cnp_handled": 0}), NONE)
    assert judge(seen, rail, Nothing(), Limits()).status is Status.PASS


@pytest.mark.parametrize("recording", ["hw-counters-good", "hw-counters-congested"])
def test_recordings(judged: Judge, recording: str) -> None:
    finding = judged(CHECK, {"grep": (f"sysfs/{recording}.txt", 0)})
    assert finding.verdict.status is Status.PASS  # a total is no rate

"""physical.efa-counters"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from checks.physical.efa_counters import (
    CHECK,
    DROPPED,
    MANY,
    PEERS_LOST,
    Limits,
    Seen,
    judge,
    not_applicable,
)
from commcheck.check import Nothing
from commcheck.model import Cause, Kind, Machine, Rail, Status

RAIL = Rail(0, "rdmap79s0", driver="efa", state="ACTIVE")
QUIET = {
    "rx_drops": 0,
    "unresponsive_remote_events": 0,
    "retrans_pkts": 1_000,
    "tx_pkts": 9_000_000,
}
SENT = {"tx_pkts": 1_000_000}


@pytest.mark.parametrize(
    ("last", "added", "status", "cause", "reason"),
    [
        (QUIET, {**SENT, "retrans_pkts": 10}, Status.PASS, None, "0.00% of the packets"),
        (QUIET, {}, Status.PASS, None, "never counted"),
        (QUIET, {**SENT, "retrans_pkts": 900}, Status.PASS, None, "0.09% of the packets"),
        ({**QUIET, "retrans_pkts": 90_000}, {**SENT, "retrans_pkts": 20_000}, Status.WARN, MANY,
         "2.00% of the packets sent again, want at most 0.10%"),
        ({**QUIET, "rx_drops": 40}, {"rx_drops": 4}, Status.WARN, DROPPED, "rx_drops +4"),
        ({**QUIET, "rx_drops": 40}, SENT, Status.PASS, None, "before that: rx_drops 40"),
        ({**QUIET, "unresponsive_remote_events": 2}, {"unresponsive_remote_events": 2},
         Status.WARN, PEERS_LOST, "unresponsive_remote_events +2"),
    ],
)  # fmt: skip
def test_judge(
    watched: Any,
    last: Mapping[str, int],
    added: Mapping[str, int],
    status: Status,
    cause: Cause | None,
    reason: str,
) -> None:
    verdict = judge(Seen(watched(last, added)), RAIL, Nothing(), Limits())
    assert (verdict.status, verdict.cause) == (status, cause), verdict.reason
    assert reason in verdict.reason


def test_what_is_not_counted_is_not_known(watched: Any) -> None:
    verdict = judge(Seen(watched({"tx_pkts": 4})), RAIL, Nothing(), Limits())
    assert verdict.kind is Kind.UNDECIDABLE
    old = judge(Seen(watched({"rx_drops": 0, "tx_pkts": 4}, SENT)), RAIL, Nothing(), Limits())
    assert (old.status, "again" in old.reason) == (Status.PASS, False)


def test_of_others_and_unreadable(judged: Any) -> None:
    assert not_applicable(RAIL) is None
    assert not_applicable(Rail(0, "mlx5_0", driver="mlx5_core"))
    machine = Machine("p5-01", "gpu-efa", rails=(RAIL,))
    said = {"grep -rHs . /sys/class/infiniband/rdmap79s0": ("garbage\n", 0)}
    assert judged(CHECK, said, machine=machine).verdict.status is Status.ERROR

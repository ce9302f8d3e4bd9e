"""Who waits for whom, and for how much of the time."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from checks.physical.pause_storm import (
    CHECK,
    PAUSED,
    SLOW_HOST,
    STORM,
    Limits,
    Seen,
    Want,
    judge,
)
from commcheck.model import Cause, Kind, Origin, Rail, Status, Wanted
from tests.checks.conftest import Judge, Watch

RX, TX = "rx_prio3_pause_duration", "tx_prio3_pause_duration"
TOTALS = {RX: 2_920_118_332, TX: 71_022_118, "tx_pause_storm_error_events": 3}
SAID = Origin("inventory/prod.yaml:3")
PFC = Want(Wanted("pfc", SAID))


@pytest.mark.parametrize(
    ("added", "seconds", "status", "cause", "says"),
    [
        ({}, 10.0, Status.PASS, None, "0.0% of 10 s"),
        ({RX: 50_000}, 10.0, Status.PASS, None, "0.5% of 10 s"),
        ({RX: 300_000}, 10.0, Status.WARN, PAUSED, "3.0% of 10 s, want below 1%"),
        ({RX: 3_000_000}, 10.0, Status.FAIL, PAUSED, "30.0% of 10 s"),
        ({TX: 3_000_000, RX: 20_000}, 10.0, Status.FAIL, SLOW_HOST, f"{TX} 30.0%"),
        # In half a second one burst is a large share.
        ({RX: 200_000}, 0.5, Status.WARN, PAUSED, "40.0% of 0.5 s"),
        ({"tx_pause_storm_error_events": 1}, 0.5, Status.FAIL, STORM, "+1 in 0.5 s"),
        ({}, 0.0, Status.PASS, None, "0.0%"),
    ],
)
def test_judge(
    watched: Watch,
    rail: Rail,
    added: Mapping[str, int],
    seconds: float,
    status: Status,
    cause: Cause | None,
    says: str,
) -> None:
    seen = Seen(watched(TOTALS, added, seconds=seconds))
    verdict = judge(seen, rail, PFC, Limits())
    assert (verdict.status, verdict.cause) == (status, cause)
    assert says in verdict.reason


def test_a_driver_loaded_anew_since_the_earlier_run(watched: Watch, rail: Rail) -> None:
    """The counter has just reached again what it showed then."""
    storm = "tx_pause_storm_error_events"
    seen = Seen(watched(TOTALS, {storm: 2}, since={storm: 0}))
    verdict = judge(seen, rail, PFC, Limits())
    assert (verdict.cause, "+2 in 10 s" in verdict.reason) == (STORM, True)


def test_only_counters_that_the_driver_has_are_shown(watched: Watch, rail: Rail) -> None:
    bnxt = {f"pfc_pri{prio}_rx_duration_us": 0 for prio in range(8)}
    verdict = judge(Seen(watched(bnxt)), rail, PFC, Limits())
    assert verdict.reason == f"{rail.label}: pfc_pri3_rx_duration_us 0.0% of 10 s"


def test_the_least_time_that_counts(watched: Watch, rail: Rail) -> None:
    for seconds, status in ((Limits().long_s, Status.FAIL), (Limits().long_s - 0.1, Status.WARN)):
        seen = Seen(watched(TOTALS, {RX: int(0.3e6 * seconds)}, seconds=seconds))
        assert judge(seen, rail, PFC, Limits()).status is status


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("{}_prio{}_pause_duration", {"rx": PAUSED, "tx": SLOW_HOST}),
        ("pfc_pri{1}_{0}_duration_us", {"rx": PAUSED, "tx": SLOW_HOST}),
    ],
)
@pytest.mark.parametrize("priority", range(8))
def test_every_priority_counts(
    watched: Watch, rail: Rail, name: str, cause: Mapping[str, Cause], priority: int
) -> None:
    for way, found in cause.items():
        counter = name.format(way, priority)
        seen = Seen(watched({counter: 9_000_000}, {counter: 3_000_000}))
        assert judge(seen, rail, PFC, Limits()).cause is found


def test_the_hours_since_an_earlier_run_count(watched: Watch, rail: Rail) -> None:
    seen = Seen(watched(TOTALS, since={TX: 1_000_000_000}, since_s=7200.0))
    verdict = judge(seen, rail, PFC, Limits())
    assert (verdict.status, verdict.cause) == (Status.FAIL, SLOW_HOST)
    assert "since an earlier run" in verdict.reason


@pytest.mark.parametrize(
    ("recording", "flow", "kind"),
    [
        ("stats-mlx5-good", "pfc", Kind.NONE),
        ("stats-mlx5-pause-storm", "pfc", Kind.NONE),  # nothing is added between two readings
        ("stats-bnxt-good", "pfc", Kind.NONE),
        ("stats-mlx5-global-pause", "pfc", Kind.NOT_APPLICABLE),
        ("stats-mlx5-discards", "pfc", Kind.NOT_APPLICABLE),  # PFC off: no such counters
        ("stats-mlx5-good", "global", Kind.NOT_APPLICABLE),
    ],
)
def test_recordings(judged: Judge, recording: str, flow: str, kind: Kind) -> None:
    finding = judged(CHECK, {"ethtool": (f"ethtool/{recording}.txt", 0)}, flow_control=flow)
    assert finding.verdict.kind is kind
    assert finding.verdict.status is (Status.SKIP if kind else Status.PASS)

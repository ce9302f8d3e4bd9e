"""Loss is what is added, not what once was; unknown is neither."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from checks.physical.nic_rx_discards import CHECK, DISCARDS, Limits, Seen, Want, judge
from commcheck.model import Kind, Origin, Rail, Status, Wanted
from tests.checks.conftest import Judge, Watch

CLEAN = {"rx_discards_phy": 0, "rx_prio3_discards": 0}
OLD = {"rx_discards_phy": 918223, "rx_prio3_discards": 918223}
SAID = Origin("inventory/prod.yaml:3")


def want(flow: str = "pfc") -> Want:
    return Want(flow_control=Wanted(flow, SAID))


@pytest.mark.parametrize(
    ("last", "added", "since", "status", "says"),
    [
        (CLEAN, {}, None, Status.PASS, "never counted"),
        (OLD, {}, None, Status.PASS, "no growth in 10 s; before that: rx_discards_phy 918223"),
        (OLD, {"rx_discards_phy": 12}, None, Status.FAIL, "rx_discards_phy +12 in 10 s"),
        (OLD, {}, {"rx_discards_phy": 40}, Status.WARN, "+40 in 2 h, since an earlier run"),
        (OLD, {}, {"rx_discards_phy": 40_000}, Status.FAIL, "+40000 in 2 h"),
        (OLD, {}, {}, Status.PASS, "no growth in 2 h"),
        # Went backwards: counted since the reset, so at least that many.
        (OLD, {"rx_discards_phy": -5}, None, Status.FAIL, "+918223 at least (reset)"),
        (CLEAN, {"rx_discards_phy": -5}, None, Status.PASS, "reset since: rx_discards_phy"),
    ],
)
def test_judge(
    watched: Watch,
    rail: Rail,
    last: Mapping[str, int],
    added: Mapping[str, int],
    since: Mapping[str, int] | None,
    status: Status,
    says: str,
) -> None:
    verdict = judge(Seen(watched(last, added, since=since)), rail, want(), Limits())
    assert verdict.status is status
    assert says in verdict.reason
    if status in (Status.FAIL, Status.WARN):
        assert verdict.cause is DISCARDS
        assert "ethtool -S ens1np0" in verdict.remedies[0].command


def test_old_totals_in_a_moment_tell_nothing(watched: Watch, rail: Rail) -> None:
    verdict = judge(Seen(watched(OLD, seconds=0.4)), rail, want(), Limits())
    assert verdict.kind is Kind.UNDECIDABLE
    assert "run again later" in verdict.reason


def test_a_lossy_fabric_is_warned_of(watched: Watch, rail: Rail) -> None:
    seen = Seen(watched(OLD, {"rx_discards_phy": 12}))
    assert judge(seen, rail, want("none"), Limits()).status is Status.WARN


@pytest.mark.parametrize(
    ("dropped", "status"),
    [(100, Status.WARN), (101, Status.FAIL)],  # of a million: 1e-4
)
@pytest.mark.parametrize("since", [False, True])
def test_more_than_a_lossy_fabric_drops(
    watched: Watch, rail: Rail, dropped: int, status: Status, *, since: bool
) -> None:
    last = {**OLD, "rx_packets_phy": 5_000_000}
    # Told once for the port and once for its priority: one drop all the same.
    added = {"rx_discards_phy": dropped, "rx_prio3_discards": dropped, "rx_packets_phy": 1_000_000}
    seen = Seen(watched(last, {}, since=added, since_s=60) if since else watched(last, added))
    assert judge(seen, rail, want("none"), Limits()).status is status


def test_a_few_on_a_host_that_does_little(watched: Watch, rail: Rail) -> None:
    last = {"rx_discards_phy": 918223, "rx_packets_phy": 5_000_000}
    for dropped, status in ((99, Status.WARN), (100, Status.FAIL)):
        seen = Seen(watched(last, {"rx_discards_phy": dropped, "rx_packets_phy": 5_000}))
        assert judge(seen, rail, want("none"), Limits()).status is status


def test_a_pause_storm_explains_them_and_need_not_bring_them() -> None:
    always = {edge.cause: edge.always for edge in CHECK.explained_by}
    assert always["pause-storm"] is False


def test_other_names_and_none(watched: Watch, rail: Rail) -> None:
    bnxt = watched({"rx_stat_discard": 7}, {"rx_stat_discard": 7})
    assert judge(Seen(bnxt), rail, want(), Limits()).status is Status.FAIL
    nothing = judge(Seen(watched({"queue_1_rx_bytes": 5})), rail, want(), Limits())
    assert nothing.kind is Kind.UNDECIDABLE
    ena = Rail(0, "rdmap79s0", driver="ena")
    assert judge(Seen(watched({})), ena, want(), Limits()).kind is Kind.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("recording", "kind", "status"),
    [
        ("stats-mlx5-good", Kind.NONE, Status.PASS),
        ("stats-mlx5-discards", Kind.UNDECIDABLE, Status.SKIP),  # both readings are the same
        ("stats-bnxt-good", Kind.NONE, Status.PASS),
    ],
)
def test_recordings(judged: Judge, recording: str, kind: Kind, status: Status) -> None:
    finding = judged(CHECK, {"ethtool": (f"ethtool/{recording}.txt", 0)})
    assert (finding.verdict.status, finding.verdict.kind) == (status, kind)


def test_no_tool_is_an_error(judged: Judge) -> None:
    assert judged(CHECK).verdict.error == "CommandMissing"

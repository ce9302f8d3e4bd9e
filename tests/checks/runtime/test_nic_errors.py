"""runtime.nic-errors"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from checks.runtime.nic_errors import (
    CHECK,
    DAMAGED,
    EFA_LOST,
    LINK_LOST,
    LOST,
    Limits,
    Seen,
    Want,
    judge,
    judge_metrics,
)
from commcheck.check import Unread
from commcheck.errors import Unjudgeable
from commcheck.expect import ADAPTIVE_ROUTING
from commcheck.metrics.reading import Line, Metrics
from commcheck.model import Cause, Host, Kind, Machine, Origin, Rail, Status, Wanted

POINTS = 97
RAILS = ("mlx5_0",)


def watched(*parts: tuple[str, Sequence[float | None]], label: str = "device") -> Metrics:
    """Counters of one port; a curve is filled in front with its first value."""
    lines: dict[str, tuple[Line, ...]] = {}
    for name, tail in parts:
        values = (tail[0],) * (POINTS - len(tail)) + tuple(tail)
        lines[name] = (*lines.get(name, ()), Line({label: "mlx5_0", "port": "1"}, values))
    return Metrics("http://prom", ("gpu-01",), 0.0, 900.0, POINTS, lines)


CLEAN = ("link_downed", (3.0,))


@pytest.mark.parametrize(
    ("parts", "status", "cause", "says"),
    [
        ([CLEAN], Status.PASS, None, "none of 1 counter of 1 port grew in 24 h"),
        ([("link_downed", (0, 1, 1, 1))], Status.WARN, LINK_LOST, "link_downed +1 in 24 h"),
        ([("link_downed", (0, 3, 6, 6))], Status.FAIL, LINK_LOST, "link_downed +6"),
        # A reboot: what is counted after it counts, what was before does not.
        ([("symbol_error", (900, 0, 0, 0))], Status.PASS, None, "none of 1"),
        ([("symbol_error", (900, 4, 4, 4))], Status.WARN, DAMAGED, "symbol_error +4"),
        ([("port_rcv_errors", (0, 0, 50, 120))], Status.FAIL, DAMAGED, "120 in the last hour"),
        ([("port_rcv_errors", (0, 500, 500, 500, 500, 500, 500))], Status.WARN, DAMAGED, "ago"),
        # A job that died once is none of this host's faults; what goes on is.
        ([("local_ack_timeout_err", (0, 0, 900, 900))], Status.WARN, LOST, "+900"),
        (
            [("local_ack_timeout_err", (0, 100, 200, 300, 400))],
            Status.FAIL,
            LOST,
            "400 in the last hour",
        ),
        ([("packet_seq_err", (0, 100, 200, 300, 400))], Status.FAIL, LOST, "packet_seq_err"),
    ],
)
def test_counters(
    parts: list[tuple[str, Sequence[float | None]]], status: Status, cause: Cause | None, says: str
) -> None:
    (verdict,) = judge_metrics(watched(*parts), RAILS, by_design=False, limits=Limits())
    assert (verdict.status, verdict.cause) == (status, cause)
    assert says in verdict.reason


@pytest.mark.parametrize(
    ("parts", "status", "says"),
    [
        # Two jobs scrape one exporter, or two replicas of a server: each loss is one loss.
        ([("link_downed", (0, 3, 3, 3))] * 2, Status.WARN, "link_downed +3"),
        # What one of them saw in two quarters of the last hour did not go on through all of it.
        ([("local_ack_timeout_err", (0, 0, 100, 100, 200))] * 2, Status.WARN, "+200"),
        # One is a scrape behind, and the other missed the last two: no step back, no reboot.
        (
            [("symbol_error", (900, 901, None, None)), ("symbol_error", (900, 900, 901, 901))],
            Status.WARN,
            "symbol_error +1 ",
        ),
        # The exporter's pod was replaced: its series goes on under another name.
        (
            [("link_downed", (0, 2, None, None)), ("link_downed", (None, None, 2, 3))],
            Status.WARN,
            "link_downed +3",
        ),
    ],
)
def test_a_counter_that_is_told_twice_counts_once(
    parts: list[tuple[str, Sequence[float | None]]], status: Status, says: str
) -> None:
    (verdict,) = judge_metrics(watched(*parts), RAILS, by_design=False, limits=Limits())
    assert verdict.status is status
    assert says in verdict.reason


def test_what_is_not_counted_is_said_where_nothing_was_found() -> None:
    said = "lost packets are not counted: a newer node_exporter reads hw_counters"
    for parts, told in (((CLEAN,), True), ((CLEAN, ("packet_seq_err", (7.0,))), False)):
        (verdict,) = judge_metrics(watched(*parts), RAILS, by_design=False, limits=Limits())
        assert verdict.status is Status.PASS
        assert (said in verdict.reason) is told


def test_order_is_no_matter_where_the_fabric_sprays() -> None:
    metrics = watched(("out_of_sequence", (0, 1e5, 2e5, 3e5, 4e5)))
    (verdict,) = judge_metrics(metrics, RAILS, by_design=True, limits=Limits())
    assert verdict.status is Status.PASS
    assert "out_of_sequence +400000 in 24 h" in verdict.reason
    assert "commcheck_adaptive_routing: false where they may not" in verdict.reason


@pytest.mark.parametrize(
    ("platform", "declared", "status"),
    [
        # NVIDIA's subnet manager turns adaptive routing on, and NCCL counts on it.
        ("gpu-ib", {}, Status.PASS),
        ("gpu-ib", {"commcheck_adaptive_routing": False}, Status.FAIL),
        ("gpu-roce", {}, Status.FAIL),
        ("gpu-roce", {"commcheck_adaptive_routing": True}, Status.PASS),
    ],
)
def test_infiniband_sprays_packets_by_itself(
    platform: str, declared: dict[str, object], status: Status
) -> None:
    seen = Seen(watched(("packet_seq_err", (0, 100, 200, 300, 400))))
    host = Host("gpu-01", declared)
    origin = Origin("test")
    asked = Want(
        Wanted("http://p", origin),
        Wanted("pfc", origin),
        Wanted(bool(ADAPTIVE_ROUTING.on(host, platform).value), origin),
    )
    machine = Machine("gpu-01", platform, rails=(Rail(0, "mlx5_0", fabric=True),))
    assert [each.status for each in judge(seen, machine, asked, Limits())] == [status]


def test_each_cause_has_its_verdict() -> None:
    metrics = watched(("link_downed", (0, 9)), ("symbol_error", (0, 9)))
    verdicts = judge_metrics(metrics, RAILS, by_design=False, limits=Limits())
    assert [each.cause for each in verdicts] == [LINK_LOST, DAMAGED]


@pytest.mark.parametrize(
    "metrics",
    [
        watched(),
        watched(("link_downed", (0.0, *[None] * 4))),  # its exporter fell silent
        watched(("link_downed", (None, None, 0.0, 0.0))),  # watched for minutes only
    ],
)
def test_what_was_not_watched_is_unknown(metrics: Metrics) -> None:
    (verdict,) = judge_metrics(metrics, RAILS, by_design=False, limits=Limits())
    assert verdict.kind is Kind.UNDECIDABLE


def test_a_port_that_came_minutes_ago_hides_no_other() -> None:
    """A VF comes back from a pod; it counts only where the inventory says that it trains."""
    metrics = watched(CLEAN)
    young = Line({"device": "mlx5_7", "port": "1"}, (None,) * (POINTS - 2) + (0.0, 0.0))
    lines = {"link_downed": (*metrics.lines["link_downed"], young)}
    metrics = replace(metrics, lines=lines)
    (verdict,) = judge_metrics(metrics, (), by_design=False, limits=Limits())
    assert verdict.status is Status.PASS
    assert "grew in 24 h; mlx5_7 watched for less than" in verdict.reason
    rails = ("mlx5_0", "mlx5_7")
    (verdict,) = judge_metrics(metrics, rails, by_design=False, limits=Limits())
    assert verdict.kind is Kind.UNDECIDABLE


def test_a_rail_without_a_series_is_named() -> None:
    verdicts = judge_metrics(watched(CLEAN), ("mlx5_0", "mlx5_3"), by_design=False, limits=Limits())
    assert [each.kind for each in verdicts] == [Kind.UNDECIDABLE]
    assert "no counters of mlx5_3" in verdicts[0].reason


@pytest.mark.parametrize(
    ("tail", "status", "cause", "says"),
    [
        ((7,), Status.PASS, None, "none of 2 counters of 1 port grew"),
        # A job that ended: what was under way to it is dropped.
        ((0, 900, 900, 900, 900, 900), Status.PASS, None, "none of 1 other counter of 1 port"),
        ((0, 2, 3, 4, 5), Status.PASS, None, "rx_drops +5 in 24 h"),
        ((0, 100, 200, 300, 400), Status.WARN, EFA_LOST, "rx_drops +400 in 24 h"),
    ],
)
def test_efa_sends_again_by_itself_and_is_warned_of_where_that_goes_on(
    tail: Sequence[float], status: Status, cause: Cause | None, says: str
) -> None:
    metrics = watched(("rx_drops", tail), ("retrans_timeout_events", (3,)))
    (verdict,) = judge_metrics(metrics, RAILS, by_design=False, limits=Limits())
    assert (verdict.status, verdict.cause) == (status, cause)
    assert says in verdict.reason


def test_efa_that_no_exporter_tells_of_is_unknown() -> None:
    machine = Machine("gpu-01", "gpu-efa", rails=(Rail(0, "rdmap79s0", fabric=True),))
    (verdict,) = judge(Seen(watched()), machine, want("http://p"), Limits())
    assert verdict.kind is Kind.UNDECIDABLE
    assert "AWS's EFA node exporter" in verdict.reason


def test_npus_have_ports_of_their_own() -> None:
    metrics = watched(("link_up_num", (2, 9)), label="id")
    (verdict,) = judge_metrics(metrics, (), by_design=False, limits=Limits())
    assert (verdict.status, verdict.cause) == (Status.FAIL, LINK_LOST)
    assert verdict.reason.startswith("NPU mlx5_0: link_up_num +7")


def want(url: str | None) -> Want:
    origin = Origin("test")
    return Want(Wanted(url, origin), Wanted("pfc", origin), Wanted(False, origin))


def test_the_judge_of_the_check() -> None:
    machine = Machine("gpu-01", "gpu-roce", rails=(Rail(0, "mlx5_0", fabric=True),))
    seen = Seen(watched(CLEAN))
    assert [v.status for v in judge(seen, machine, want("http://p"), Limits())] == [Status.PASS]
    assert judge(seen, machine, want(None), Limits())[0].kind is Kind.NOT_APPLICABLE
    with pytest.raises(Unjudgeable, match="silent"):
        judge(Seen(Unread("silent", "ServerSilent")), machine, want("http://p"), Limits())
    assert CHECK.id == "runtime.nic-errors"
    assert "gpu-tcp" not in CHECK.platforms

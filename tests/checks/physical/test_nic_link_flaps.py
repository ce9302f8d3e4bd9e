"""A few losses are the start of a host; more, or one while looking, are not."""

from __future__ import annotations

import pytest

from checks.physical.nic_link_flaps import CHECK, FLAPS, Limits, Seen, judge
from commcheck.check import Nothing
from commcheck.model import Kind, Rail, Status
from tests.checks.conftest import Judge, Watch

NAME = "link_down_events_phy"


@pytest.mark.parametrize(
    ("last", "added", "since", "since_s", "status", "says"),
    [
        (1, 0, None, 0.0, Status.PASS, "lost 1 times"),
        (4, 1, None, 0.0, Status.FAIL, "+1 in 10 s"),
        (4, 0, 2, 7200.0, Status.WARN, "+2 in 2 h"),
        (23, 0, 12, 7200.0, Status.FAIL, "+12 in 2 h"),
        (23, 0, 12, 259_200.0, Status.WARN, "+12 in 3 days"),
        (23, 0, 0, 7200.0, Status.PASS, "no growth in 2 h"),
    ],
)
def test_judge(
    watched: Watch,
    rail: Rail,
    last: int,
    added: int,
    since: int | None,
    since_s: float,
    status: Status,
    says: str,
) -> None:
    earlier = None if since is None else {NAME: since}
    seen = Seen(watched({NAME: last}, {NAME: added}, since=earlier, since_s=since_s))
    verdict = judge(seen, rail, Nothing(), Limits())
    assert verdict.status is status
    assert says in verdict.reason
    assert verdict.cause is (None if status is Status.PASS else FLAPS)


def test_a_restarted_driver_counts_its_own_start(watched: Watch, rail: Rail) -> None:
    few = Seen(watched({NAME: 2}, since={NAME: -7}))
    assert judge(few, rail, Nothing(), Limits()).status is Status.PASS
    many = Seen(watched({NAME: 23}, since={NAME: -7}))
    assert judge(many, rail, Nothing(), Limits()).kind is Kind.UNDECIDABLE


def test_many_and_nobody_knows_when(watched: Watch, rail: Rail) -> None:
    verdict = judge(Seen(watched({NAME: 23})), rail, Nothing(), Limits())
    assert verdict.kind is Kind.UNDECIDABLE


@pytest.mark.parametrize(
    ("recording", "status", "kind"),
    [
        ("stats-mlx5-good", Status.PASS, Kind.NONE),
        ("stats-bnxt-discards", Status.PASS, Kind.NONE),  # four since its driver was loaded
        ("stats-mlx5-symbol-errors", Status.SKIP, Kind.UNDECIDABLE),
    ],
)
def test_recordings(judged: Judge, recording: str, status: Status, kind: Kind) -> None:
    finding = judged(CHECK, {"ethtool": (f"ethtool/{recording}.txt", 0)})
    assert (finding.verdict.status, finding.verdict.kind) == (status, kind)

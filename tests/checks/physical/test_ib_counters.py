"""InfiniBand's small counters: what grows, and what is full and cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from checks.physical.ib_counters import BAD_LINK, CHECK, DROPS, Seen, judge
from commcheck.check import Nothing
from commcheck.growing import Limits
from commcheck.model import Cause, Kind, Machine, Status
from tests.checks.conftest import RAIL, Judge, Watch

IB = replace(RAIL, link_layer="InfiniBand")
ZERO = {"symbol_error": 0, "link_downed": 0, "port_rcv_errors": 0, "port_xmit_discards": 0}


@pytest.mark.parametrize(
    ("added", "status", "cause"),
    [
        ({}, Status.PASS, None),
        ({"symbol_error": 4}, Status.FAIL, BAD_LINK),
        ({"link_downed": 1}, Status.FAIL, BAD_LINK),
        ({"port_rcv_errors": 1}, Status.FAIL, BAD_LINK),
        ({"port_xmit_discards": 9}, Status.WARN, DROPS),
        ({"port_xmit_discards": 9, "link_downed": 1}, Status.FAIL, BAD_LINK),
    ],
)
def test_judge(
    watched: Watch, added: Mapping[str, int], status: Status, cause: Cause | None
) -> None:
    verdict = judge(Seen(watched({**ZERO, **added}, added)), IB, Nothing(), Limits())
    assert (verdict.status, verdict.cause) == (status, cause)


def test_a_full_counter_cannot_show_growth(watched: Watch) -> None:
    verdict = judge(Seen(watched({**ZERO, "symbol_error": 65535})), IB, Nothing(), Limits())
    assert verdict.kind is Kind.UNDECIDABLE
    assert "perfquery -R" in verdict.reason


def test_one_counter_of_64_bits_at_65535_more_is_not_full(watched: Watch) -> None:
    verdict = judge(Seen(watched({**ZERO, "symbol_error": 65536})), IB, Nothing(), Limits())
    assert verdict.status is Status.PASS


@pytest.mark.parametrize(
    ("recording", "status", "kind"),
    [
        ("ib-counters-good", Status.PASS, Kind.NONE),
        ("ib-counters-bad-link", Status.SKIP, Kind.UNDECIDABLE),
    ],
)
def test_recordings(judged: Judge, recording: str, status: Status, kind: Kind) -> None:
    machine = Machine("gpu-01", "gpu-ib", rails=(IB,))
    finding = judged(CHECK, {"grep": (f"sysfs/{recording}.txt", 0)}, machine=machine)
    assert (finding.verdict.status, finding.verdict.kind) == (status, kind)


def test_ethernet_is_not_judged(judged: Judge) -> None:
    machine = Machine("gpu-01", "gpu-ib", rails=(RAIL,))
    assert judged(CHECK, machine=machine).verdict.kind is Kind.NOT_APPLICABLE

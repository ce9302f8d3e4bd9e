"""What is lost, what came too late, what came damaged; and fabrics that lose by design."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from checks.physical.roce_retransmit import (
    CHECK,
    CORRUPTION,
    LOST,
    TIMED_OUT,
    Limits,
    Seen,
    Want,
    judge,
)
from commcheck.model import Cause, Kind, Origin, Rail, Status, Wanted
from tests.checks.conftest import Judge, Watch

ZERO = {
    "out_of_sequence": 0,
    "packet_seq_err": 0,
    "local_ack_timeout_err": 0,
    "rx_icrc_encapsulated": 0,
    "rx_write_requests": 10_000_000,
}
SAID = Origin("inventory/prod.yaml:3")
PLAIN = Want(Wanted("pfc", SAID), Wanted(False, SAID))
SPRAYS = Want(Wanted("pfc", SAID), Wanted(True, SAID))
LOSSY = Want(Wanted("none", SAID), Wanted(False, SAID))


@pytest.mark.parametrize(
    ("added", "want", "found"),
    [
        ({}, PLAIN, []),
        ({"rx_write_requests": 5_000_000}, PLAIN, []),
        ({"out_of_sequence": 3}, PLAIN, [(Status.FAIL, LOST)]),
        ({"packet_seq_err": 3}, PLAIN, [(Status.FAIL, LOST)]),
        ({"local_ack_timeout_err": 1}, PLAIN, [(Status.FAIL, TIMED_OUT)]),
        ({"rx_icrc_encapsulated": 712}, PLAIN, [(Status.FAIL, CORRUPTION)]),
        (
            {"out_of_sequence": 9, "local_ack_timeout_err": 2},
            PLAIN,
            [(Status.FAIL, TIMED_OUT), (Status.FAIL, LOST)],
        ),
        ({"out_of_sequence": 3}, SPRAYS, [(Status.WARN, LOST)]),
        ({"out_of_sequence": 3}, LOSSY, [(Status.WARN, LOST)]),
        # More than one in ten thousand of what arrived is not by design.
        (
            {"out_of_sequence": 3_000, "rx_write_requests": 5_000_000},
            LOSSY,
            [(Status.FAIL, LOST)],
        ),
        ({"local_ack_timeout_err": 1}, SPRAYS, [(Status.FAIL, TIMED_OUT)]),
    ],
)
def test_judge(
    watched: Watch,
    rail: Rail,
    added: Mapping[str, int],
    want: Want,
    found: list[tuple[Status, Cause]],
) -> None:
    last = {name: value + added.get(name, 0) for name, value in ZERO.items()}
    verdicts = judge(Seen(watched(last, added)), rail, want, Limits())
    if not found:
        assert [each.status for each in verdicts] == [Status.PASS]
    else:
        assert [(each.status, each.cause) for each in verdicts] == found
        assert "hw_counters" in verdicts[0].remedies[0].command


def test_the_time_outs_of_a_job_that_died_meanwhile_only_warn(watched: Watch, rail: Rail) -> None:
    seen = Seen(
        watched(ZERO | {"local_ack_timeout_err": 900}, since={"local_ack_timeout_err": 900})
    )
    (verdict,) = judge(seen, rail, PLAIN, Limits())
    assert (verdict.status, verdict.cause) == (Status.WARN, TIMED_OUT)
    lost = Seen(watched(ZERO | {"out_of_sequence": 900}, since={"out_of_sequence": 900}))
    (verdict,) = judge(lost, rail, PLAIN, Limits())
    assert (verdict.status, verdict.cause) == (Status.FAIL, LOST)


def test_old_losses_with_and_without_a_window(watched: Watch, rail: Rail) -> None:
    old = {**ZERO, "out_of_sequence": 918223}
    (long,) = judge(Seen(watched(old)), rail, PLAIN, Limits())
    assert long.status is Status.PASS
    assert "before that: out_of_sequence 918223" in long.reason
    (short,) = judge(Seen(watched(old, seconds=0.3)), rail, PLAIN, Limits())
    assert short.kind is Kind.UNDECIDABLE


@pytest.mark.parametrize(
    ("recording", "status", "kind"),
    [
        ("hw-counters-good", Status.PASS, Kind.NONE),
        ("hw-counters-congested", Status.PASS, Kind.NONE),
        ("hw-counters-loss", Status.SKIP, Kind.UNDECIDABLE),
        ("hw-counters-bnxt-loss", Status.SKIP, Kind.UNDECIDABLE),
    ],
)
def test_recordings(judged: Judge, recording: str, status: Status, kind: Kind) -> None:
    finding = judged(CHECK, {"grep": (f"sysfs/{recording}.txt", 0)})
    assert (finding.verdict.status, finding.verdict.kind) == (status, kind)


def test_no_counters_at_all_is_an_error(judged: Judge) -> None:
    assert judged(CHECK, {"grep": ("", 2)}).verdict.error == "CommandFailed"

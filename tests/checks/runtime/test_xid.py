"""runtime.xid"""

from __future__ import annotations

from typing import Any

import pytest

from checks.runtime.xid import (
    CHECK,
    LINK_FAILED,
    MEMORY_FAILED,
    NEEDS_REBOOT,
    NEEDS_RESET,
    OFF_THE_BUS,
    TO_WATCH,
    Limits,
    Seen,
    judge,
)
from commcheck.check import Nothing, Unread
from commcheck.errors import Unjudgeable
from commcheck.formats.kernel_xid import KernelXids, XidEvent
from commcheck.metrics.reading import Line, Metrics
from commcheck.model import Cause, Kind, Machine, Status

ONE = Machine("gpu-01", "gpu-roce")
UNWATCHED = Unread("not recorded", "CommandNotRun")
UPTIME = ("host-health/uptime.txt", 0)


@pytest.mark.parametrize(
    ("name", "status", "cause", "says"),
    [
        ("clean", Status.PASS, None, "no fault reported by the GPU driver since the boot"),
        ("xid-79", Status.FAIL, OFF_THE_BUS, "Xid 79 on 0000:c3:00 (fell off the bus, 60 min ago)"),
        ("programs", Status.PASS, None, "Xid 45 on 0000:43:00"),
        ("recovered", Status.PASS, None, "Xid 154 on 0000:43:00 (recovered"),
        ("nvlink", Status.FAIL, LINK_FAILED, "SXid 22013 on 0000:06:00.0 (NVSwitch error"),
    ],
)
def test_journal(judged: Any, name: str, status: Status, cause: Cause | None, says: str) -> None:
    said = {
        "journalctl": (f"host-health/journal-{name}.txt", 0),
        "cat /proc/uptime": UPTIME,
    }
    verdict = judged(CHECK, said, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (status, cause)
    assert says in verdict.reason


def test_syslog_speaks_where_the_journal_does_not(judged: Any) -> None:
    said = {
        "journalctl": ("Compiled without pattern matching support\n", 1),
        "sed": ("host-health/syslog-kern.txt", 0),
        "cat /proc/uptime": UPTIME,
    }
    verdict = judged(CHECK, said, machine=ONE).verdict
    # When it happened is not told, so that it may have been mended since.
    assert (verdict.status, verdict.cause) == (Status.WARN, TO_WATCH)
    assert "Xid 48 on 0000:9d:00" in verdict.reason


def test_a_log_that_nobody_may_read(judged: Any) -> None:
    verdict = judged(CHECK, {"cat /proc/uptime": UPTIME}, machine=ONE).verdict
    assert verdict.status is Status.ERROR
    assert "none of journalctl-xid or syslog-xid spoke" in verdict.reason


def event(code: int, hours: float | None, text: str = "", pci: str = "0000:1b:00") -> XidEvent:
    return XidEvent(code, pci, text, False, None if hours is None else hours * 3600)


@pytest.mark.parametrize(
    ("events", "status", "cause"),
    [
        ([event(119, 1)], Status.FAIL, NEEDS_RESET),
        ([event(95, 1)], Status.FAIL, MEMORY_FAILED),
        ([event(74, 1)], Status.FAIL, LINK_FAILED),
        ([event(13, 1), event(79, 2)], Status.FAIL, OFF_THE_BUS),
        ([event(119, 30)], Status.WARN, TO_WATCH),
        ([event(119, None)], Status.WARN, TO_WATCH),
        ([event(94, 1)], Status.WARN, TO_WATCH),
        ([event(777, 1)], Status.WARN, TO_WATCH),
        ([event(63, 1), event(31, 1)], Status.PASS, None),
    ],
)
def test_codes_and_ages(events: list[XidEvent], status: Status, cause: Cause | None) -> None:
    log = KernelXids("5.15.0", tuple(events))
    verdict = judge(Seen(log, UNWATCHED), ONE, Nothing(), Limits())
    assert (verdict.status, verdict.cause) == (status, cause)


TO_REBOOT = "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"


@pytest.mark.parametrize(
    ("events", "cause"),
    [
        # An illegal access of a program can end so, and no GPU has left the bus.
        ([event(154, 1, TO_REBOOT), event(31, 1)], NEEDS_REBOOT),
        ([event(154, 1, TO_REBOOT), event(119, 1)], NEEDS_REBOOT),
        ([event(154, 1, TO_REBOOT), event(79, 1)], OFF_THE_BUS),
    ],
)
def test_a_reboot_is_no_power_cycle(events: list[XidEvent], cause: Cause) -> None:
    verdict = judge(Seen(KernelXids("5", tuple(events)), UNWATCHED), ONE, Nothing(), Limits())
    assert (verdict.status, verdict.cause) == (Status.FAIL, cause)
    assert "Xid 154 on 0000:1b:00 (needs a reboot" in verdict.reason or cause is OFF_THE_BUS


def test_what_is_mended_is_mended_on_that_gpu_only() -> None:
    to_none = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
    faults = [event(154, 1, to_none), event(119, 2), event(119, 2, pci="0000:43:00")]
    verdict = judge(Seen(KernelXids("5", tuple(faults)), UNWATCHED), ONE, Nothing(), Limits())
    assert verdict.status is Status.FAIL
    assert "0000:43:00" in verdict.reason
    assert "0000:1b:00" not in verdict.reason


def test_a_log_without_its_beginning_is_no_clean_log() -> None:
    verdict = judge(Seen(KernelXids(None, (event(31, 1),)), UNWATCHED), ONE, Nothing(), Limits())
    assert verdict.kind is Kind.UNDECIDABLE
    verdict = judge(Seen(KernelXids(None, (event(79, 1),)), UNWATCHED), ONE, Nothing(), Limits())
    assert verdict.status is Status.FAIL


def test_a_flood_is_counted_and_not_all_named() -> None:
    events = [event(31, 1)] * 2000 + [event(code, 1) for code in (13, 43, 45, 69, 32)]
    verdict = judge(Seen(KernelXids("5", tuple(events)), UNWATCHED), ONE, Nothing(), Limits())
    assert "2000 times" in verdict.reason
    assert verdict.reason.endswith("and 2 more")
    assert len(verdict.measured["reports"]) == 20  # type: ignore[arg-type] # plain JSON


def told(*codes: float | None) -> Metrics:
    """What dcgm-exporter said of one GPU, by the quarter of an hour, up to now."""
    line = Line({"gpu": "3"}, codes)
    return Metrics("http://prom", ("gpu-01",), 0.0, 900.0, len(codes), {"xid": (line,)})


@pytest.mark.parametrize(
    ("codes", "status", "cause", "says"),
    [
        ((0, 0, 79, 79), Status.FAIL, OFF_THE_BUS, "Xid 79 on GPU 3 (fell off the bus, 15 min ago"),
        ((0, None, 48, 48), Status.FAIL, MEMORY_FAILED, "Xid 48"),
        ((0, 79, 31, 31), Status.FAIL, OFF_THE_BUS, "Xid 79"),
        # It was there before anything was watched: it may have been mended since.
        ((79, 79, 79, 79), Status.WARN, TO_WATCH, "before that day"),
    ],
)
def test_monitoring_speaks_where_nobody_may_read_the_log(
    codes: tuple[float | None, ...], status: Status, cause: Cause, says: str
) -> None:
    log = Unread("sudo -n was refused", "SudoRefused", "allow it")
    verdict = judge(Seen(log, told(*codes)), ONE, Nothing(), Limits())
    assert (verdict.status, verdict.cause) == (status, cause)
    assert says in verdict.reason


def test_what_came_up_today_fails_whatever_stands_there_from_before() -> None:
    """The older code is the worse one, and may have been mended since."""
    lines = (Line({"gpu": "3"}, (79,) * 24), Line({"gpu": "5"}, (0, 0, *(48,) * 22)))
    metrics = Metrics("http://prom", ("gpu-01",), 0.0, 900.0, 24, {"xid": lines})
    log = Unread("sudo -n was refused", "SudoRefused", "allow it")
    verdict = judge(Seen(log, metrics), ONE, Nothing(), Limits())
    assert (verdict.status, verdict.cause) == (Status.FAIL, MEMORY_FAILED)
    assert "Xid 48 on GPU 5" in verdict.reason
    assert "5.25 h ago" in verdict.reason


def test_faults_of_other_kinds_on_other_gpus_are_told_behind_the_worst() -> None:
    faults = [event(79, 1), event(48, 1, pci="0000:43:00"), event(31, 1, pci="0000:9d:00")]
    verdict = judge(Seen(KernelXids("5", tuple(faults)), UNWATCHED), ONE, Nothing(), Limits())
    assert (verdict.status, verdict.cause) == (Status.FAIL, OFF_THE_BUS)
    assert "; also Xid 48 on 0000:43:00 (" in verdict.reason
    assert "Xid 31" not in verdict.reason
    gpus = {"0": 79, "1": 48, "2": 74, "3": 31}
    lines = tuple(Line({"gpu": gpu}, (0, 0, code, code)) for gpu, code in gpus.items())
    metrics = Metrics("http://prom", ("gpu-01",), 0.0, 900.0, 4, {"xid": lines})
    log = Unread("sudo -n was refused", "SudoRefused", "allow it")
    reason = judge(Seen(log, metrics), ONE, Nothing(), Limits()).reason
    assert reason.startswith("dcgm-exporter: Xid 79 on GPU 0 (")
    assert "; also Xid 48 on GPU 1 (" in reason
    assert ", Xid 74 on GPU 2 (" in reason
    assert "Xid 31" not in reason


def shown(*series: tuple[float | None, ...], name: str = "xid", **others: object) -> Metrics:
    """The series of one GPU, each of six quarters of an hour."""
    lines = {name: tuple(Line({"gpu": "3"}, each) for each in series), **others}
    return Metrics("http://prom", ("gpu-01",), 0.0, 900.0, 6, lines)  # type: ignore[arg-type] # Lines


_: None = None
NIC = (Line({"device": "mlx5_0"}, (0.0,) * 6),)


@pytest.mark.parametrize(
    ("metrics", "status", "says"),
    [
        # dcgm-exporter 3.3.6 writes the code into a label, too: a new code is a new series.
        (shown((0, 0, 0, _, _, _), (_, _, _, 79, 79, 79)), Status.FAIL, "30 min ago"),
        # A pod ended, or a job's: its labels change, the code was there before.
        (shown((79, 79, 79, _, _, _), (_, _, _, 79, 79, 79)), Status.WARN, "before that day"),
        # Older releases have no series before the first code; the host was watched already.
        (shown((_, _, _, 79, 79, 79), link_downed=NIC), Status.FAIL, "30 min ago"),
        (shown((_, _, _, 79, 79, 79)), Status.WARN, "before that day"),
        # The slices of a GPU, and two exporters on a host, tell the same code: it is one.
        (shown((0, 0, 79, 79, 79, 79), (0, 0, 79, 79, 79, 79)), Status.FAIL, "ago); the host"),
        # The host was rebooted since: nobody is sent to power cycle it once more.
        (shown((0, 79, 79, _, 0, 0)), Status.WARN, "60 min ago, 0 since the exporter's new start)"),
        (shown((0, 79, 79, _, 0, 48)), Status.FAIL, "Xid 48 on GPU 3"),
        # One of two exporters began anew, or nothing is told any more: the code stands.
        (shown((0, 79, 79, _, 0, 0), (0, 79, 79, 79, 79, 79)), Status.FAIL, "60 min ago); the"),
        (shown((0, 79, 79, _, _, _)), Status.FAIL, "60 min ago); the"),
        # The report that came next took its place before anybody looked.
        (shown((0, 0, 45, 45, 45, 45), xid_most=(Line({"gpu": "3"}, (0, 0, 79, 45, 45, 45)),)),
         Status.FAIL, "Xid 79 on GPU 3 (fell off the bus, 45 min ago)"),
    ],
)  # fmt: skip
def test_a_code_is_as_old_as_its_gpu_has_shown_it(
    metrics: Metrics, status: Status, says: str
) -> None:
    log = Unread("sudo -n was refused", "SudoRefused", "allow it")
    verdict = judge(Seen(log, metrics), ONE, Nothing(), Limits())
    assert verdict.status is status
    assert says in verdict.reason


@pytest.mark.parametrize("metrics", [UNWATCHED, told(0, 0), told(None, None), told(0, 31)])
def test_no_code_of_the_exporter_is_no_clean_log(metrics: Metrics | Unread) -> None:
    log = Unread("sudo -n was refused", "SudoRefused", "allow it")
    with pytest.raises(Unjudgeable, match="sudo -n was refused") as caught:
        judge(Seen(log, metrics), ONE, Nothing(), Limits())
    assert caught.value.type_name == "SudoRefused"

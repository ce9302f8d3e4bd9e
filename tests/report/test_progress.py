from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import threading
import time

import pytest

from commcheck.model import Kind, Status
from commcheck.report.counts import many
from commcheck.report.progress import (
    MAX_UNREACHED,
    LineProgress,
    LiveProgress,
    NoProgress,
    Progress,
    progress_on,
)
from tests.report.runs import CHECKS, PASS, incident, pfc_fail, plan, result, verdict

HOSTS = tuple(f"node-{number:03d}" for number in range(40))


class Clock:
    """Time that passes when told."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def lines_of(progress: Progress, stream: io.StringIO) -> list[str]:
    progress.finish()
    return stream.getvalue().splitlines()


def test_a_run_in_lines() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = LineProgress(stream, clock)
    record = incident()
    progress.begin(record.plan)
    for host in record.plan.hosts:
        progress.host_started(host)
    for each in record.results:
        progress.result(each)
    progress.note("two\nlines ##vso[x]")
    for host, code in record.reached.items():
        progress.host_done(host, code)
    clock.now_s += 252
    assert lines_of(progress, stream) == [
        "commcheck: 7 hosts, 6 checks",
        "commcheck: FAIL physical.pfc-enabled on node-0003: eth2 has PFC on [], want [3]",
        "commcheck: WARN physical.nic-firmware on node-0003: 28.43 on rail 6",
        "commcheck: ERROR physical.reachable on node-0010: no SSH banner within 15 s",
        "commcheck: ERROR physical.nic-link-up on node-0011: ibv_devinfo timed out after 30 s",
        "commcheck: two lines ## vso[x]",
        "commcheck: node-0010: ssh-banner",
        "commcheck: 7 of 7 hosts, 42 verdicts (2 fail, 2 error, 2 warn),"
        " 1 not judged whole, 4 min 12 s",
    ]
    progress.finish()
    assert len(stream.getvalue().splitlines()) == 8


def test_unreached_hosts_are_named_up_to_a_number() -> None:
    stream = io.StringIO()
    progress = LineProgress(stream, Clock())
    progress.begin(plan(HOSTS))
    for host in HOSTS:
        progress.host_done(host, "ssh-refused")
    lines = lines_of(progress, stream)
    assert sum("ssh-refused" in line for line in lines) == MAX_UNREACHED
    assert len(lines) == MAX_UNREACHED + 3


def test_a_silent_run_has_a_heartbeat() -> None:
    stream = io.StringIO()
    progress = LineProgress(stream, Clock(), heartbeat_s=0.01)
    progress.begin(plan(HOSTS))
    progress.host_started("node-000")
    end = time.monotonic() + 10
    while "1 busy" not in stream.getvalue() and time.monotonic() < end:
        time.sleep(0.01)
    progress.finish()
    beats = stream.getvalue()
    assert "commcheck: 0 of 40 hosts, 0 verdicts, 1 busy, 0.00 s\n" in beats
    time.sleep(0.05)
    assert stream.getvalue() == beats
    assert "commcheck-heartbeat" not in {thread.name for thread in threading.enumerate()}


def test_lines_from_many_threads_stay_whole() -> None:
    stream = io.StringIO()
    progress = LineProgress(stream, Clock())
    progress.begin(plan(HOSTS))

    def host(name: str) -> None:
        progress.host_started(name)
        progress.result(pfc_fail(name))
        for check in CHECKS[3:]:
            progress.result(result(name, check, PASS))
        progress.host_done(name)

    threads = [threading.Thread(target=host, args=(name,)) for name in HOSTS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = lines_of(progress, stream)
    assert len(lines) == 3
    assert lines[-1] == "commcheck: 40 of 40 hosts, 160 verdicts (40 fail), 0.00 s"


class Gone(io.StringIO):
    """A stream whose reader has left."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


class Ascii(io.StringIO):
    """A stream of a Jenkins agent with LANG=C."""

    encoding = "ascii"

    def write(self, text: str) -> int:
        text.encode("ascii")
        return super().write(text)


def test_streams_that_fail_do_not_stop_the_run() -> None:
    progress = LineProgress(Gone(), Clock())
    progress.begin(plan(HOSTS))
    progress.note("x")
    progress.finish()
    stream = Ascii()
    progress = LineProgress(stream, Clock())
    progress.note("中文 ✓")
    progress.finish()
    assert "commcheck: ?? ?" in stream.getvalue()


def test_the_kinds_of_progress() -> None:
    assert isinstance(progress_on(io.StringIO(), live=True, quiet=True), NoProgress)
    assert isinstance(progress_on(io.StringIO(), live=False, quiet=False), LineProgress)
    assert isinstance(progress_on(io.StringIO(), live=True, quiet=False), LiveProgress)
    quiet = NoProgress()
    quiet.begin(plan(HOSTS))
    quiet.host_started("a")
    quiet.result(pfc_fail("a"))
    quiet.host_done("a", "x")
    quiet.note("x")
    quiet.finish()


@pytest.mark.parametrize("hosts", [1, 40])
def test_the_live_view_has_a_fixed_height(hosts: int) -> None:
    """On a real pseudo-terminal: causes scroll by above, the view is gone at the end."""
    leader, follower = pty.openpty()
    shown = bytearray()
    reader = threading.Thread(target=_read_all, args=(leader, shown))
    reader.start()
    with os.fdopen(follower, "w", encoding="utf-8") as stream:
        progress = LiveProgress(stream, Clock())
        progress.begin(plan(HOSTS[:hosts]))
        for host in HOSTS[:hosts]:
            progress.host_started(host)
            progress.result(pfc_fail(host))
            progress.result(
                result(host, "library.env", verdict(Status.SKIP, Kind.GATED, "gated: x"))
            )
        time.sleep(0.3)
        for host in HOSTS[:hosts]:
            progress.host_done(host)
        progress.note("[bold]no markup[/bold] \x1b[2J")
        progress.finish()
        progress.finish()
        progress.note("after the end")
    reader.join()
    os.close(leader)
    text = shown.decode()
    assert text.count("FAIL physical.pfc-enabled on node-000") == 1
    assert "[bold]no markup[/bold]" in text
    assert "\x1b[2J" not in text
    assert "after the end" not in text
    assert text.rstrip().endswith(
        f"{hosts} of {many(hosts, 'host')}, {2 * hosts} verdicts ({hosts} fail), 0.00 s"
    )
    # Eleven lines at every refresh, so ten up to the first of them; and up by all at the end.
    moves = re.findall(r"(?:\x1b\[1A\x1b\[2K)+", text)
    assert {len(each) // len("\x1b[1A\x1b[2K") for each in moves} == {10, 11}
    assert "node-000" in text
    assert "\x1b[?25h" in text  # the cursor is shown again


def _read_all(descriptor: int, into: bytearray) -> None:
    while True:
        try:
            data = os.read(descriptor, 65536)
        except OSError:
            return
        if not data:
            return
        into.extend(data)


def test_a_terminal_that_dies_does_not_stop_the_run() -> None:
    leader, follower = pty.openpty()
    with (
        contextlib.suppress(OSError),  # of the stream's own close
        os.fdopen(follower, "w", encoding="utf-8") as stream,
    ):
        progress = LiveProgress(stream, Clock())
        progress.begin(plan(HOSTS))
        os.close(leader)
        for host in HOSTS:
            progress.host_started(host)
            progress.result(pfc_fail(host))
        time.sleep(0.2)
        progress.finish()
        finished = True
    assert finished


@pytest.mark.parametrize("host", ["gpu-key", "token-gpu", "passwd1"])
def test_a_host_may_be_called_like_a_secret(host: str) -> None:
    stream = io.StringIO()
    progress = LineProgress(stream, Clock())
    progress.begin(plan((host,)))
    progress.result(pfc_fail(host))
    progress.host_done(host, "dns")
    _, failed, done, _ = lines_of(progress, stream)
    assert failed.startswith(f"commcheck: FAIL physical.pfc-enabled on {host}: eth2 has PFC on")
    assert done == f"commcheck: {host}: dns"


def test_what_to_do_about_a_host_is_not_cut_and_each_reason_is_told_once() -> None:
    stream = io.StringIO()
    progress = LineProgress(stream, Clock())
    progress.begin(plan(HOSTS[:3]))
    remedy = "; look there" * 60
    for host, code in zip(HOSTS, ("dns", "tcp-refused", "dns"), strict=False):
        gone = verdict(Status.ERROR, Kind.HOST, f"{code}: why{remedy}; then this")
        progress.result(result(host, CHECKS[0], gone))
    told = lines_of(progress, stream)[1:-1]
    assert [line.split(": ")[2] for line in told] == ["dns", "tcp-refused"]
    assert all(line.endswith("; then this") for line in told)

"""This machine runs out of something while it climbs: disk, descriptors, threads."""

from __future__ import annotations

import random
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from commcheck.collect.base import Ask, Sink
from commcheck.collect.fleet import visit_all
from commcheck.collect.limits import A_HOST, OURS, room_for
from commcheck.errors import NotKept
from commcheck.model import Host
from commcheck.report.folder import RunFolder
from tests.chaos.climbs import assert_never_wrong, assert_nothing_lost, begin, climb, report
from tests.chaos.conftest import names, words_for
from tests.chaos.seeds import SEEDS
from tests.cheap import CHECKS, CheapFleet
from tests.report.test_folder import frame

TWENTY = names(20)

# --- disk ---------------------------------------------------------------------------------------


def test_a_full_disk_leaves_whole_lines(small_disk: Callable[[int], Path]) -> None:
    folder = RunFolder.create(small_disk(16), "20261129T150405Z-7f3a")
    with pytest.raises(NotKept, match="No space left on device; what is there is whole: mend that"):
        for _ in range(100):
            folder.keep("gpu-01", frame(b"x" * 900))
    kept = list(folder.frames("gpu-01"))
    assert 2 < len(kept) < 20
    # A line that is shorter goes on behind a whole one.
    (folder.path / "room").unlink(missing_ok=True)
    folder.release("gpu-01")
    assert len(list(folder.frames("gpu-01"))) == len(kept)


@pytest.mark.slow
@pytest.mark.parametrize("kib", [16, 100])
def test_a_full_disk_ends_the_run_in_order_and_room_lets_it_go_on(
    cheap: CheapFleet, small_disk: Callable[[int], Path], kib: int
) -> None:
    disk = small_disk(kib)
    base = disk / "reports"
    ended = begin(words_for(cheap), base).ended(codes=(2, 3))
    assert "No space left on device" in ended.err
    assert len(ended.err.splitlines()) == 1
    subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
    assert report(base).code in (0, 3)
    again = climb([*words_for(cheap), "--resume", "last"], base)
    assert again.code == 0, again.err
    assert_nothing_lost(again, TWENTY, len(CHECKS) + 1)


@pytest.mark.slow
def test_a_disk_that_may_only_be_read_is_told_in_one_line(
    cheap: CheapFleet, small_disk: Callable[[int], Path]
) -> None:
    """As the kernel does by itself where a disk is broken."""
    disk = small_disk(4096)
    base = disk / "reports"
    assert climb(words_for(cheap), base).code == 0
    events = base / "latest" / "events.ndjson"
    events.write_text("".join(events.read_text().splitlines(keepends=True)[:-9]))
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for words in (
        words_for(cheap),
        [*words_for(cheap), "--resume", "last"],
        [*words_for(cheap), "--again", "last"],
        ["report", "last"],
        ["judge", "last", "-q"],
    ):
        ended = climb(words, base)
        assert ended.code == 2, words
        assert "Read-only file system" in ended.err
        assert len(ended.err.splitlines()) == 1
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    assert climb([*words_for(cheap), "--resume", "last"], base).code == 0


# --- descriptors, threads -----------------------------------------------------------------------


def test_descriptors_are_counted_before_anybody_is_contacted() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (OURS + 10 * A_HOST, before[1]))
        assert room_for(10) == 10
        assert room_for(12) == 12  # the soft limit is ours to raise
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == OURS + 12 * A_HOST
        assert room_for(1) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.slow
@pytest.mark.parametrize("most", [60, 90])
def test_few_descriptors_make_it_slower_and_no_host_unreachable(
    cheap: CheapFleet, tmp_path: Path, most: int
) -> None:
    ended = climb(words_for(cheap), tmp_path / "reports", before=f"ulimit -n {most}")
    assert ended.code == 0, ended.err
    assert "hosts at a time, not 64: more file descriptors are not allowed here" in ended.out
    assert_nothing_lost(ended, TWENTY, len(CHECKS) + 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_too_little_memory_makes_hosts_unknown_and_none_wrong(
    cheap: CheapFleet, tmp_path: Path, seed: int
) -> None:
    """Between what loading takes and enough. Rust's parts abort, C's may crash."""
    base = tmp_path / "reports"
    whole = climb(words_for(cheap), base)
    healthy = {each[:3]: each[3] for each in whole.verdicts()}
    running = begin(
        [*words_for(cheap), "--host-deadline", 10, "-f", 6],
        base,
        before=f"ulimit -v {random.Random(seed).randrange(320, 700) << 10}",
        environment={"COMMCHECK_DEBUG": ""},
    )
    ended = running.ended(90, codes=(0, 3, 134, 139, -signal.SIGABRT, -signal.SIGSEGV))
    if (ended.run / "events.ndjson").exists() and report(base).code in (0, 3):
        assert_never_wrong(report(base), healthy)
    assert climb(words_for(cheap), base).code == 0


@pytest.mark.parametrize(("most", "code"), [(2, ""), (0, "out-of-resources")])
def test_a_visit_that_finds_no_thread_waits_or_is_told(
    monkeypatch: pytest.MonkeyPatch, most: int, code: str
) -> None:
    """Two at a time have a thread: the others wait. Not even one has: each host is told so."""
    start, running = threading.Thread.start, [0]
    ended: dict[str, str] = {}

    def scarce(self: threading.Thread) -> None:
        if running[0] >= most:
            raise RuntimeError("can't start new thread")
        running[0] += 1
        start(self)

    class Short:
        def visit(self, host: Host, ask: Ask, sink: Sink) -> None:
            time.sleep(0.01)
            running[0] -= 1

        def stop(self) -> None:
            """Nothing is left to stop."""

    monkeypatch.setattr(threading.Thread, "start", scarce)
    hosts = [Host(f"n{number}") for number in range(5)]
    visit_all(
        hosts,
        lambda _host: Short(),
        lambda _host: lambda _frame: (),
        lambda _host: lambda *_frames: None,
        forks=4,
        started=lambda _host: None,
        done=lambda host, error: ended.update({host.name: error.code if error else ""}),
        stop=threading.Event(),
    )
    assert ended == dict.fromkeys([host.name for host in hosts], code)

"""Signals and kills at moments of chance, and two climbs on one fleet at once."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.climbs import assert_never_wrong, assert_nothing_lost, begin, climb, report, until
from tests.chaos.conftest import names, words_for
from tests.chaos.seeds import SEEDS
from tests.cheap import CHECKS, CheapFleet, Script
from tests.sshd import descendants, send_signal

HOSTS = 12
CODES = {
    signal.SIGINT: (130,),
    signal.SIGTERM: (143, -signal.SIGTERM),
    signal.SIGHUP: (143, -signal.SIGHUP),
    signal.SIGKILL: (-signal.SIGKILL,),
}
"""The second of two: of a signal that came after the climb, while reports were written."""


@pytest.fixture(scope="module")
def fleet(slow_script: Script) -> Iterator[CheapFleet]:
    with CheapFleet(HOSTS, slow_script) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def healthy(
    fleet: CheapFleet, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str, str], str]:
    whole = climb(words_for(fleet), tmp_path_factory.mktemp("whole") / "reports")
    assert whole.code == 0, whole.err
    return {(host, check, subject): status for host, check, subject, status in whole.verdicts()}


@pytest.mark.slow
@pytest.mark.parametrize("number", CODES)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_signal_at_any_moment_loses_nothing(
    fleet: CheapFleet,
    healthy: dict[tuple[str, str, str], str],
    tmp_path: Path,
    number: signal.Signals,
    seed: int,
) -> None:
    chance = random.Random(f"{seed} {number}")
    base = tmp_path / "reports"
    words = [*words_for(fleet), "-f", 4, "--workers", chance.choice([1, 2])]
    running = begin(words, base)
    until(lambda: '"plan"' in running.events)
    time.sleep(chance.uniform(0, 2))
    pids = descendants(running.process.pid)
    # A terminal's Ctrl-C and a hang-up reach the whole group, others the process alone.
    to_all = number in (signal.SIGINT, signal.SIGHUP)
    (os.killpg if to_all else os.kill)(running.process.pid, number)
    ended = running.ended(20, codes=(*CODES[number], 0))
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), 20)
    told = report(base)
    assert told.code in ((0, 3) if ended.code else (0,))
    assert_nothing_lost(told, names(HOSTS), len(CHECKS) + 1)
    assert_never_wrong(told, healthy)
    again = climb([*words, "--resume", "last"], base)
    assert again.code == 0, again.err
    assert {key[:3]: key[3] for key in again.verdicts()} == healthy


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_climb_that_stands_still_says_so_and_blames_no_host(
    fleet: CheapFleet,
    healthy: dict[tuple[str, str, str], str],
    tmp_path: Path,
    workers: int,
    seed: int,
) -> None:
    """A laptop is closed, or Ctrl-Z: time limits pass while nothing can be heard."""
    chance = random.Random(f"{seed} {workers}")
    base = tmp_path / "reports"
    words = [*words_for(fleet), "-f", 4, "--workers", workers]
    running = begin([*words, "--host-deadline", 5, "--connect-timeout", 2], base)
    until(lambda: '"event":"host"' in running.events)
    time.sleep(chance.uniform(0, 0.5))
    pids = (running.process.pid, *descendants(running.process.pid))
    for number, wait_s in ((signal.SIGSTOP, 7.0), (signal.SIGCONT, 0.0)):
        send_signal(pids, number)
        time.sleep(wait_s)
    ended = running.ended(30, codes=(0, 3))
    assert "commcheck stood still for" in str(ended.results["notes"])
    assert "commcheck stood still for" in ended.out
    assert_nothing_lost(ended, names(HOSTS), len(CHECKS) + 1)
    assert_never_wrong(ended, healthy)
    again = climb([*words, "--again", "last"], base)
    assert again.code == 0, again.err


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_two_climbs_on_one_fleet_do_not_meet(
    fleet: CheapFleet, healthy: dict[tuple[str, str, str], str], tmp_path: Path, seed: int
) -> None:
    """Into one folder of reports, begun at moments that differ by chance."""
    chance = random.Random(seed)
    base = tmp_path / "reports"
    running = []
    for _ in range(2):
        running.append(begin([*words_for(fleet), "-f", 4], base))
        time.sleep(chance.uniform(0, 0.5))
    for each in running:
        assert each.ended().code == 0
    runs = [path for path in base.iterdir() if path.is_dir() and not path.is_symlink()]
    assert len(runs) == 2
    for run in runs:
        told = climb(["report", run], base)
        assert {key[:3]: key[3] for key in told.verdicts()} == healthy

"""The clock of the machine that climbs, or of a host, jumps by hours in the middle."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from commcheck.demo.cheap import CheapFleet, Script
from tests.chaos.climbs import assert_nothing_lost, begin, climb, until
from tests.chaos.conftest import CHECKS, names, words_for

LIBRARY = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(LIBRARY is None, reason="no libfaketime (Debian: libfaketime)"),
]
HOSTS = 12


@pytest.fixture(scope="module")
def fleet(slow_script: Script) -> Iterator[CheapFleet]:
    with CheapFleet(HOSTS, slow_script) as fleet:
        yield fleet


@pytest.mark.parametrize("jump", ["+5h", "-30d"])
def test_a_clock_that_jumps_ends_no_visit_and_loses_no_run(
    fleet: CheapFleet, tmp_path: Path, jump: str
) -> None:
    """Only the time of day jumps, as when NTP sets it; waiting is measured by another clock."""
    told = tmp_path / "time"
    told.write_text("+0")
    base = tmp_path / "reports"
    faked = {
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME_TIMESTAMP_FILE": str(told),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DONT_RESET": "1",
    }
    words = [*words_for(fleet), "-f", 4, "--host-deadline", 20, "--deadline", 40]
    begun = time.monotonic()
    running = begin(words, base, environment=faked)
    until(lambda: '"event":"host"' in running.events)
    told.write_text(jump)
    ended = running.ended(40)
    assert ended.code == 0, ended.err
    assert_nothing_lost(ended, names(HOSTS), len(CHECKS) + 1)
    assert ended.results["run"]["state"] == "complete"
    assert 0 <= ended.results["run"]["duration_s"] < time.monotonic() - begun
    # A later run, with a name that is older or newer by the jump, is the last one all the same.
    again = climb([*words, "--again", "last"], base)
    assert again.code == 0, again.err
    assert "12 hosts passed then" in again.out

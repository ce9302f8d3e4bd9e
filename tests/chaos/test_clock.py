"""The clock of the machine that climbs, or of a host, jumps by hours in the middle."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos.climbs import assert_nothing_lost, begin, climb, until
from tests.chaos.conftest import names, words_for
from tests.cheap import CHECKS, CheapFleet, Script
from tests.e2e.conftest import fleet_of
from tests.e2e.test_watching import counted
from tests.sshd import REMOTE, SshdFleet

__all__ = ["fleet_of"]

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


def faked(told: Path) -> dict[str, str]:
    """An environment in which the time of day is off by what a file says; other clocks are not."""
    return {
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME_TIMESTAMP_FILE": str(told),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DONT_RESET": "1",
    }


@pytest.mark.parametrize("jump", ["+5h", "-30d"])
def test_a_clock_that_jumps_ends_no_visit_and_loses_no_run(
    fleet: CheapFleet, tmp_path: Path, jump: str
) -> None:
    """Only the time of day jumps, as when NTP sets it; waiting is measured by another clock."""
    told = tmp_path / "time"
    told.write_text("+0")
    base = tmp_path / "reports"
    words = [*words_for(fleet), "-f", 4, "--host-deadline", 20, "--deadline", 40]
    begun = time.monotonic()
    running = begin(words, base, environment=faked(told))
    until(lambda: '"event":"host"' in running.events)
    told.write_text(jump)
    ended = running.ended(40)
    assert ended.code == 0, ended.err
    assert_nothing_lost(ended, names(HOSTS), len(CHECKS) + 1)
    assert ended.results["run"]["state"] == "complete"
    assert "stood still" not in ended.out
    assert 0 <= ended.results["run"]["duration_s"] < time.monotonic() - begun
    # A later run, with a name that is older or newer by the jump, is the last one all the same.
    again = climb([*words, "--again", "last"], base)
    assert again.code == 0, again.err
    assert "12 hosts passed then" in again.out


@pytest.mark.sshd
@pytest.mark.parametrize("jump", ["+5h", "-30d"])
def test_a_host_whose_clock_jumps_is_judged_as_ever(
    fleet_of: Callable[..., SshdFleet], tmp_path: Path, jump: str
) -> None:
    """In the middle of its commands, and of the seconds for which its counters are watched."""
    told = tmp_path / "time"
    told.write_text("+0")
    tools = f"{REMOTE}/s0/bin:{REMOTE}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    setting = " ".join(f"{name}={value}" for name, value in faked(told).items())
    watched = {"commcheck_thresholds": {"window_s": 2, "enough_s": 2}}
    fleet = fleet_of(1, config=[f"SetEnv PATH={tools} {setting}"], variables=watched)
    (server,) = fleet.servers
    counted(server, 40)
    dates = tmp_path / "dates"
    text = (server.bin / "mlnx_qos").read_text().partition("\n")[2]
    server.tool("mlnx_qos", f"date +%s >> {dates}; sleep 1; {text}")
    asked = ("nic-mtu", "pfc-enabled", "roce-retransmit")
    reach = ["-i", fleet.inventory, "--known-hosts", fleet.known_hosts]
    checks = [word for name in asked for word in ("-t", f"physical.{name}")]
    running = begin(["run", *reach, *checks, "-q", "--no-progress"], tmp_path / "reports")
    until(dates.exists)
    told.write_text(jump)
    ended = running.ended(40)
    before, after = map(int, dates.read_text().split())
    assert abs(after - before) > 4 * 3600  # it did jump, between the commands of two rails
    assert ended.code == 0, ended.err
    assert_nothing_lost(ended, fleet.names, len(asked) + 1)
    assert {each[3] for each in ended.verdicts()} == {"pass"}
    for each in ended.results["verdicts"]:
        assert 2 <= each["measured"].get("window_s", 2) < 30
    (frames,) = (ended.run / "frames").iterdir()
    for line in map(json.loads, frames.read_text().splitlines()):
        assert 0 <= line["ended_s"] - line["started_s"] < 20

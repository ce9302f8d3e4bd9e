"""Five thousand hosts of which a third are dead: bounded time, memory and words."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
import yaml

from tests.chaos.climbs import assert_nothing_lost, begin
from tests.chaos.conftest import words_for
from tests.cheap import CHECKS, CheapFleet, Script


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("hosts", "limit_s", "mib"),
    [
        pytest.param(600, 60, 260, marks=pytest.mark.slow),
        pytest.param(5000, 400, 700, marks=pytest.mark.soak),
    ],
)
def test_a_third_of_the_hosts_is_dead(
    script: Script, tmp_path: Path, hosts: int, limit_s: int, mib: int
) -> None:
    with CheapFleet(hosts * 2 // 3, script) as fleet:
        told = yaml.safe_load(fleet.inventory.read_text())
        group = told["all"]["children"]["gpu"]["hosts"]
        alive = list(group.items())
        # Every third host is refused at once; one in fifty has packets dropped on the way.
        mixed = {}
        for number in range(hosts):
            if number % 3 == 2 or not alive:
                silent = number % 50 == 0
                address = "192.0.2.1" if silent else f"127.30.{number // 250}.{number % 250 + 1}"
                mixed[f"dead-{number:04d}"] = {"ansible_host": address, "ansible_port": 9}
            else:
                name, variables = alive.pop(0)
                mixed[name] = variables
        told["all"]["children"]["gpu"]["hosts"] = mixed
        inventory = tmp_path / "inventory.yaml"
        inventory.write_text(yaml.safe_dump(told, sort_keys=False))
        words = [inventory if each == str(fleet.inventory) else each for each in words_for(fleet)]
        running = begin(
            ["run", "--connect-timeout", 2, "--host-deadline", 20, *words[1:]], tmp_path / "reports"
        )
        peak = 0
        while running.process.poll() is None:
            peak = max(peak, peak_mib(running.process.pid))
            assert time.monotonic() - running.begun < limit_s
            time.sleep(0.1)
        ended = running.ended()
    assert ended.code == 3
    assert_nothing_lost(ended, list(mixed), len(CHECKS) + 1)
    dead = {host: code for host, code in ended.results["run"]["not_reached"].items() if code}
    assert set(dead) == {host for host in mixed if host.startswith("dead")}
    assert set(dead.values()) <= {"tcp-refused", "tcp-timeout", "tcp-unreachable"}
    assert len(ended.out.splitlines()) < 40
    assert max(map(len, ended.out.splitlines())) < 500  # of a pipe nothing is cut
    assert 0 < peak < mib


def peak_mib(pid: int) -> int:
    """The most memory that a process had so far; 0 where it is gone."""
    try:
        found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) >> 10 if found else 0

"""A training step on a real sshd host, to which something happens: no folder, no rank is left."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.chaos.climbs import Climb, assert_nothing_runs, begin, until
from tests.chaos.conftest import full_disk, on_disk
from tests.chaos.seeds import SEEDS
from tests.e2e.test_train_step import IDLE, playbook
from tests.sshd import SshdFleet, descendants, why_no_sshd, write_tool

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sshd,
    pytest.mark.skipif(bool(why_no_sshd()), reason=why_no_sshd()),
]

# As torchrun does: told to end, it takes its time.
STUBBORN = 'trap "" TERM; : > "$COMMCHECK_STEP_FOLDER/on"; sleep 60 & wait; sleep 60'


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[SshdFleet]:
    with SshdFleet(tmp_path, n=1, sysfs=True) as fleet:
        fleet.tool("nvidia-smi", IDLE)
        yield fleet


def training(fleet: SshdFleet, disk: Path, base: Path) -> Climb:
    """A run whose one check starts the site's own training; its folder goes to ``disk``."""
    book = base.with_name("step.yaml")
    book.write_text(yaml.safe_dump(playbook("runtime.train-step", run_limit_s=60)))
    command = base.with_name("train.sh")
    write_tool(command, STUBBORN)
    variables = {
        "commcheck_platform": "gpu-roce",
        "commcheck_train_python": sys.executable,
        "commcheck_train_environment": ["env", f"TMPDIR={disk}"],
        "commcheck_train_command": [str(command)],
    }
    fleet.write_inventory(dict.fromkeys(fleet.names, variables))
    reach = ["-i", fleet.inventory, "--known-hosts", fleet.known_hosts]
    return begin(["run", book, *reach, "--allow", "load", "-q", "--no-progress"], base)


def client(running: Climb, _fleet: SshdFleet) -> None:
    running.process.kill()


def told(running: Climb, _fleet: SshdFleet) -> None:
    running.process.terminate()


def starter(_running: Climb, _fleet: SshdFleet) -> None:
    """The host runs out of memory, and this is what it takes."""
    for pid in descendants(_fleet.servers[0].pid):
        with contextlib.suppress(OSError):
            if b"-c\0import sys,zlib" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)


def connection(_running: Climb, fleet: SshdFleet) -> None:
    server = fleet.servers[0]
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, parent = int(path.parent.name), int(path.read_text().rpartition(")")[2].split()[1])
            if parent == server.pid:
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("end", [client, told, starter, connection])
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_ends_a_training_step_its_folder_goes(
    fleet: SshdFleet, tmp_path: Path, end: Callable[[Climb, SshdFleet], None], seed: int
) -> None:
    chance = random.Random(f"{seed} {end.__name__}")
    disk = tmp_path / "disk"
    disk.mkdir()
    running = training(fleet, disk, tmp_path / "reports")
    until(lambda: list(disk.glob("*/on")) or running.process.poll() is not None, 40)
    assert running.process.poll() is None, running.process.communicate()
    time.sleep(chance.uniform(0, 0.5))
    run_id = (running.base / "latest").resolve().name
    end(running, fleet)
    if end is client:
        running.process.communicate()
    else:
        ended = running.ended(40, codes=(143,) if end is told else (3,))
        statuses = {each[3] for each in ended.verdicts() if each[1] == "runtime.train-step"}
        assert statuses <= {"error", "skip"}
    until(lambda: not list(disk.iterdir()), 8)
    assert_nothing_runs(run_id)


def test_a_host_whose_disk_is_full_says_so(fleet: SshdFleet, tmp_path: Path) -> None:
    (server,) = fleet.servers
    disk = tmp_path / "disk"
    disk.mkdir()
    full_disk(server, disk, left=4096)
    ended = training(fleet, disk, tmp_path / "reports").ended(60)
    assert ended.code == 3
    (found,) = [each for each in ended.results["verdicts"] if each["check"] == "runtime.train-step"]
    assert found["status"] == "error"
    assert "No space left on device" in found["reason"]
    assert on_disk(server, "ls $1", disk) == "filled\n"
    assert_nothing_runs(ended.run.name)

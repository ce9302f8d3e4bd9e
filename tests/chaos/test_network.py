"""Real sshd hosts that die, restart or fall silent, in each stage of a visit."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.chaos.climbs import (
    Climb,
    assert_never_wrong,
    assert_nothing_lost,
    assert_nothing_runs,
    begin,
    climb,
    until,
)
from tests.chaos.conftest import full_disk
from tests.chaos.seeds import SEEDS
from tests.e2e.conftest import fleet_of
from tests.jobs.netns import Net, do, why_not
from tests.sshd import REMOTE, Server, SshdFleet, descendants, send_signal

__all__ = ["fleet_of"]
pytestmark = [pytest.mark.sshd, pytest.mark.slow]

Fleets = Callable[..., SshdFleet]

ASKED = ("nic-link-up", "nic-mtu", "pfc-enabled", "roce-trust-dscp")
ZEROS = "0000-0000-0000-000000000000"
GPUS = "".join(f"GPU {n}: NVIDIA H100 80GB HBM3 (UUID: GPU-{n:08d}-{ZEROS})\n" for n in range(8))
VERDICTS = {("reachable", ""), *((check, hca) for check in ASKED for hca in ("mlx5_0", "mlx5_1"))}


def words_for(fleet: SshdFleet, deadline_s: int = 8) -> list[object]:
    checks = [word for name in ASKED for word in ("-t", f"physical.{name}")]
    reach = ["-i", fleet.inventory, "--known-hosts", fleet.known_hosts]
    limits = ["--connect-timeout", 2, "--host-deadline", deadline_s]
    return ["run", *reach, *checks, *limits, "-q", "--no-progress"]


def slow(fleet: SshdFleet) -> None:
    """Every host takes 2 s for one of its commands, in the middle of the bundle."""
    for server in fleet.servers:
        tool = server.bin / "mlnx_qos"
        text = tool.read_text()
        if "sleep" not in text:
            tool.write_text(
                text.replace("#!/bin/sh\n", "#!/bin/sh\n[ -e /mnt/quick ] || sleep 2\n")
            )


def quick(fleet: SshdFleet) -> None:
    (fleet.folder / "quick").touch()


def healthy(fleet: SshdFleet) -> dict[tuple[str, str, str], str]:
    return {
        (host, f"physical.{check}", f"{host}/{hca}" if hca else host): "pass"
        for host in fleet.names
        for check, hca in VERDICTS
    }


def in_the_middle(running: Climb, fleet: SshdFleet) -> None:
    """Once every host runs its slow command."""
    until(lambda: len(list((running.base / "latest" / "frames").glob("*"))) == len(fleet.names))


def freezes(server: Server, fleet: SshdFleet) -> None:
    """The kernel still answers, nothing else does: a dead disk, a machine that swaps."""
    send_signal((server.pid, *descendants(server.pid)), signal.SIGSTOP)


def dies(server: Server, fleet: SshdFleet) -> None:
    """All of it at one moment, as a power cut: frozen first, so that nothing new is forked."""
    freezes(server, fleet)
    fleet.kill(server)


@pytest.mark.parametrize("fault", [dies, freezes])
@pytest.mark.parametrize("seed", SEEDS)
def test_half_of_the_fleet_is_lost_at_any_moment(
    fleet_of: Fleets, tmp_path: Path, fault: Callable[[Server, SshdFleet], None], seed: int
) -> None:
    fleet = fleet_of(4)
    slow(fleet)
    chance = random.Random(f"{seed} {fault.__name__}")
    base = tmp_path / "reports"
    running = begin(words_for(fleet), base)
    until(lambda: '"plan"' in running.events)
    time.sleep(chance.uniform(0, 3))
    for server in fleet.servers[:2]:
        fault(server, fleet)
    ended = running.ended(25)
    assert_nothing_lost(ended, fleet.names, len(ASKED) + 1)
    assert_never_wrong(ended, healthy(fleet))
    others = [each for each in ended.verdicts() if each[0] in fleet.names[2:]]
    assert {each[3] for each in others} == {"pass"}
    for server in fleet.servers[:2]:
        fleet.kill(server)
    # Where even the runner was killed, its clock is left, and ends after 2 host deadlines.
    assert_nothing_runs(ended.run.name, within_s=20)


def test_an_sshd_that_restarts_costs_one_run_and_the_next_one_passes(
    fleet_of: Fleets, tmp_path: Path
) -> None:
    fleet = fleet_of(2)
    slow(fleet)
    base = tmp_path / "reports"
    running = begin(words_for(fleet), base)
    in_the_middle(running, fleet)
    cuts_us_off(fleet.servers[0], fleet)
    ended = running.ended(25)
    assert ended.code == 3
    assert_nothing_lost(ended, fleet.names, len(ASKED) + 1)
    assert_never_wrong(ended, healthy(fleet))
    assert ended.results["run"]["not_reached"] == {fleet.names[0]: "connection-lost"}
    quick(fleet)
    again = climb([*words_for(fleet), "--again", "last"], base)
    assert again.code == 0, again.err
    assert_nothing_runs(ended.run.name)


def jumped(fleet: SshdFleet, jump: SshdFleet) -> list[object]:
    """The climb, with a jump host in front of every host."""
    server = jump.servers[0]
    shutil.copy(fleet.folder / "authorized_keys", jump.folder)  # it takes the hosts' key
    with fleet.known_hosts.open("a") as known:
        known.write(jump.known_hosts.read_text())
    way = {"ansible_ssh_common_args": f"-o ProxyJump=root@{server.address}:{server.port}"}
    fleet.write_inventory(dict.fromkeys(fleet.names, way))
    return words_for(fleet)


def cuts_us_off(server: Server, fleet: SshdFleet) -> None:
    """Its sessions end, and it takes new ones."""
    send_signal(descendants(server.pid), signal.SIGKILL)


@pytest.mark.parametrize("fault", [dies, freezes, cuts_us_off])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_jump_host_is_lost_at_any_moment(
    fleet_of: Fleets, tmp_path: Path, fault: Callable[[Server, SshdFleet], None], seed: int
) -> None:
    """Everybody behind it is lost with it; where it comes again, the others are reached."""
    fleet, jump = fleet_of(4), fleet_of(1)
    words = [*jumped(fleet, jump), "-f", 2]
    slow(fleet)
    chance = random.Random(f"{seed} {fault.__name__}")
    base = tmp_path / "reports"
    running = begin(words, base)
    until(lambda: "Accepted publickey" in jump.log)
    time.sleep(chance.uniform(0, 2.5))
    fault(jump.servers[0], jump)
    ended = running.ended(60)
    assert ended.code == 3
    assert_nothing_lost(ended, fleet.names, len(ASKED) + 1)
    assert_never_wrong(ended, healthy(fleet))
    unreached = ended.results["run"]["not_reached"]
    assert {*unreached.values()} <= {
        *("connection-lost", "jump-host-lost", "host-deadline"),
        *("tcp-refused", "banner-timeout", "tcp-timeout", "handshake-timeout"),
    }
    if fault is cuts_us_off:
        assert not unreached.keys() & {*fleet.names[2:]}
    jump.kill(jump.servers[0])
    assert_nothing_runs(ended.run.name, within_s=20)


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_a_network_that_falls_silent(tmp_path: Path) -> None:
    """The wire of one host is cut in the middle: no reset, no error, nothing comes any more."""
    net = Net(tmp_path)
    net.accelerators("0x10de", "0x030200", 8)
    net.tool("nvidia-smi", f"[ $1 = -L ] || exit 6; sleep 4; cat <<'END'\n{GPUS}END")
    variables = {"commcheck_platform": "gpu-roce", "ansible_user": "root"}
    hosts = {name: {"ansible_host": net.addresses[name], **variables} for name in net.gpus}
    (tmp_path / "inv.yaml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    reach = ["-i", tmp_path / "inv.yaml", "--known-hosts", tmp_path / "known_hosts"]
    words = ["run", *reach, "--key-file", tmp_path / "key", "-t", "physical.gpu-driver"]
    wire = f"cc{os.getpid() % 10000}br{net.addresses['gpu-a'].rpartition('.')[2]}"
    with net.running():
        running = begin([*words, "--host-deadline", 7, "-q", "--no-progress"], tmp_path / "reports")
        until(lambda: net.processes("sleep").get("sleep") == set(net.gpus))
        do("ip", "link", "set", wire, "down")
        ended = running.ended(25)
        assert ended.seconds < 7 + 2 + 8
        assert ended.results["run"]["not_reached"] == {"gpu-a": "host-deadline"}
        assert_nothing_lost(ended, net.gpus, 2)
        told = {each[0]: each[3] for each in ended.verdicts() if each[1] == "physical.gpu-driver"}
        assert told == {"gpu-a": "error", "gpu-b": "pass"}
        # Nobody could tell the host: its runner ends by itself.
        until(lambda: "sleep" not in net.processes("sleep"), 20)


def test_a_host_whose_disk_is_full_is_judged(fleet_of: Fleets, tmp_path: Path) -> None:
    """The home and /var/tmp of the host have no byte left: what only looks needs none."""
    fleet = fleet_of(1)
    (server,) = fleet.servers
    for place in (REMOTE / server.folder.name / "home", Path("/var/tmp")):
        full_disk(server, place, left=0)
    ended = climb(words_for(fleet), tmp_path / "reports")
    assert ended.code == 0, ended.err
    assert_nothing_lost(ended, fleet.names, len(ASKED) + 1)

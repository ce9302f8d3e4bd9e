"""Open MPI between hosts that are remote to each other: network namespaces with their own sshd.

A loopback address would be forked locally and prove nothing, so each host has its own network, its
own name and its own sshd; one launches, two are loaded. What runs is a real MPI program.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

HERE = Path(__file__).parent
COMMCHECK = Path(sys.executable).with_name("commcheck")
HOSTS = ("head-a", "gpu-a", "gpu-b")
BOTH = {"gpu-a", "gpu-b"}
NETWORK = "10.213.87"
PLAYBOOK = {
    "name": "wire",
    "allow": ["load"],
    "plays": [
        {"layer": "physical", "hosts": "gpu", "checks": ["physical.collective-pairs"]},
    ],
}
NVIDIA_SMI = """#!/bin/sh
case $1 in
  --query-compute-apps*) ;;
  --query-gpu=index,memory*) printf '0, 4, 0\\n1, 4, 0\\n' ;;
  *) exit 6 ;;
esac
"""
SSHD = """
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
PermitRootLogin yes
UsePAM no
SetEnv PATH={folder}/bin:/usr/local/bin:/usr/bin:/bin
"""
SSH = """
Host *
  IdentityFile {folder}/key
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""


def why_not() -> str:
    """Empty where the test can run; else what is missing."""
    for tool in ("mpirun", "mpicc", "sshd", "ip", "unshare"):
        if shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
            return f"no {tool} (Debian: openmpi-bin, libopenmpi-dev, openssh-server, iproute2)"
    if os.geteuid() != 0:
        return "network namespaces need root"
    if subprocess.run(["unshare", "-nmu", "true"], check=False, capture_output=True).returncode:
        return "namespaces are not allowed here (unshare -nmu)"
    if not Path("/etc/machine-id").is_file() or not Path("/sys/bus/pci/devices").is_dir():
        return "no /etc/machine-id or /sys/bus/pci/devices to put the hosts' own in place of"
    return ""


def do(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


@dataclass
class Net:
    """The running hosts. ``spaces``: inode of each one's network namespace."""

    folder: Path
    spaces: dict[str, int]

    def run(self, *options: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        self.write_inventory(env or {})
        return subprocess.Popen(
            [
                *(COMMCHECK, "run", "-i", self.folder / "inventory.yaml"),
                *(self.folder / "wire.yaml", "--allow", "load", "--out", self.folder / "reports"),
                *("--known-hosts", self.folder / "known_hosts", "--host-keys", "strict"),
                *options,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def write_inventory(self, env: dict[str, str]) -> None:
        at = {name: {"ansible_host": f"{NETWORK}.{n}"} for n, name in enumerate(HOSTS, 11)}
        variables = {
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self.folder / "key"),
            "commcheck_platform": "gpu-roce",
            "commcheck_launch_host": "head-a",
            "commcheck_mpi_interface": f"{NETWORK}.0/24",
            "commcheck_launch_args": ["--mca", "plm_rsh_agent", f"ssh -F {self.folder}/ssh_config"],
            "commcheck_job_env": env,
            # The wire of this test is this machine's memory: any bandwidth will do.
            "commcheck_expected_busbw": {"pairs": 0.001},
            "commcheck_thresholds": {
                "physical.collective-pairs.min_mib": 1,
                "physical.collective-pairs.max_mib": 2,
                "placement_fail": 1.0,
                "collapse_fail": 0.0,
                "spread_fail": 9.0,
            },
        }
        gpus = {name: at[name] for name in HOSTS[1:]}
        tree = {"head": {"hosts": {"head-a": at["head-a"]}}, "gpu": {"hosts": gpus}}
        text = yaml.safe_dump({"all": {"vars": variables, "children": tree}})
        (self.folder / "inventory.yaml").write_text(text)

    def processes(self, *names: str) -> dict[str, set[str]]:
        """Which programs of these names run on which hosts, by their network namespace."""
        found: dict[str, set[str]] = {}
        for each in Path("/proc").glob("[0-9]*"):
            try:
                program = (each / "comm").read_text().strip()
                space = (each / "ns/net").stat().st_ino
            except OSError:
                continue
            for host, inode in self.spaces.items():
                if space == inode and program in names:
                    found.setdefault(program, set()).add(host)
        return found


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("net")
    (folder / "bin").mkdir()
    do("mpicc", "-O1", "-o", folder / "bin/all_gather_perf", HERE / "launchers/bench.c")
    (folder / "bin/nvidia-smi").write_text(NVIDIA_SMI)
    (folder / "bin/nvidia-smi").chmod(0o755)
    (folder / "ssh_config").write_text(SSH.format(folder=folder))
    (folder / "wire.yaml").write_text(yaml.safe_dump(PLAYBOOK, sort_keys=False))
    for key in ("key", "host_key"):
        do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key)
    for gpu in ("0000:0a:00.0", "0000:0b:00.0"):
        (folder / "pci" / gpu).mkdir(parents=True)
        (folder / "pci" / gpu / "vendor").write_text("0x10de\n")
        (folder / "pci" / gpu / "class").write_text("0x030200\n")
    public = " ".join((folder / "host_key.pub").read_text().split()[:2])
    numbered = list(enumerate(HOSTS, 11))
    lines = [f"{NETWORK}.{number} {public}\n" for number, _ in numbered]
    (folder / "known_hosts").write_text("".join(lines))
    tag = f"cc{os.getpid() % 10000}"
    servers: list[subprocess.Popen[bytes]] = []
    try:
        do("ip", "link", "add", f"{tag}br", "type", "bridge")
        do("ip", "addr", "add", f"{NETWORK}.1/24", "dev", f"{tag}br")
        do("ip", "link", "set", f"{tag}br", "up")
        spaces = {}
        for number, name in numbered:
            servers.append(_host(folder, tag, number, name))
            spaces[name] = Path(f"/run/netns/{tag}{number}").stat().st_ino
        _listen(folder)
        yield Net(folder, spaces)
    finally:
        for server in servers:
            server.kill()
            server.wait()
        for number, _ in numbered:
            subprocess.run(["ip", "netns", "del", f"{tag}{number}"], check=False)
        subprocess.run(["ip", "link", "del", f"{tag}br"], check=False)


def _host(folder: Path, tag: str, number: int, name: str) -> subprocess.Popen[bytes]:
    space, wire, address = f"{tag}{number}", f"{tag}v{number}", f"{NETWORK}.{number}"
    do("ip", "netns", "add", space)
    do("ip", "link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", space)
    do("ip", "link", "set", wire, "master", f"{tag}br", "up")
    inside = ("ip", "netns", "exec", space)
    do(*inside, "ip", "addr", "add", f"{address}/24", "dev", "eth0")
    do(*inside, "ip", "link", "set", "eth0", "up")
    do(*inside, "ip", "link", "set", "lo", "up")
    (folder / f"{name}.id").write_text(f"{number:032x}\n")
    config = folder / f"{name}.sshd"
    config.write_text(SSHD.format(folder=folder, address=address))
    start = (
        f"hostname {name} && mount --bind {folder}/pci /sys/bus/pci/devices && "
        f"mount --bind {folder}/{name}.id /etc/machine-id && exec /usr/sbin/sshd -D -e -f {config}"
    )
    words = [*inside, "unshare", "-um", "sh", "-c", start]
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(words, stdout=log, stderr=log)


def _listen(folder: Path) -> None:
    """Wait until every sshd answers."""
    end = time.monotonic() + 20
    for number, _ in enumerate(HOSTS, 11):
        words = ["ssh", "-F", str(folder / "ssh_config"), f"root@{NETWORK}.{number}", "true"]
        while subprocess.run(words, check=False, capture_output=True).returncode:
            assert time.monotonic() < end, [each.read_text() for each in folder.glob("*.log")]
            time.sleep(0.2)


def verdicts(net: Net) -> list[dict[str, Any]]:
    document = json.loads((net.folder / "reports/latest/results.json").read_text())
    found: list[dict[str, Any]] = [
        each for each in document["verdicts"] if each["check"] == "physical.collective-pairs"
    ]
    return found


def test_open_mpi_runs_between_remote_hosts(net: Net) -> None:
    net.run().wait(120)
    said = verdicts(net)
    assert [(each["subject"], each["status"]) for each in said] == [
        ("@gpu", "pass"),
        ("gpu-a", "pass"),
        ("gpu-b", "pass"),
    ], said
    assert "4 ranks on gpu-a, gpu-b" in said[1]["reason"]
    assert not net.processes("orted", "all_gather_perf", "mpirun", "sleep")


def test_a_killed_commcheck_leaves_no_daemon_and_no_rank(net: Net) -> None:
    run = net.run(env={"BENCH_HANGS": "1"})
    try:
        _wait_until(
            lambda: (
                net.processes("orted", "all_gather_perf")
                == {"orted": BOTH, "all_gather_perf": BOTH}
            ),
            60,
        )
        assert net.processes("mpirun") == {"mpirun": {"head-a"}}
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    _wait_until(lambda: not net.processes("orted", "all_gather_perf", "mpirun", "sleep"), 15)


def _wait_until(is_so: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.2)

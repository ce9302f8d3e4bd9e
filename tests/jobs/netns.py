"""Hosts that are really remote to each other: network namespaces with own names and own sshd.

A loopback address would be forked locally and prove nothing of a launcher, so each host has its
own network, name, machine-id, processes and sshd. Needs root.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

COMMCHECK = Path(sys.executable).with_name("commcheck")
HEAD = "head-a"
NETWORK = f"10.213.{os.getpid() % 250 + 1}"  # tests may run at the same time
PATHS = f"{os.environ.get('PATH', '')}:/usr/sbin"
IDLE_GPUS = """
case $1 in
  --query-compute-apps*) ;;
  --query-gpu=index,memory*) printf '0, 4, 0\\n1, 4, 0\\n' ;;
  *) exit 6 ;;
esac"""
SSHD = """
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
PermitRootLogin yes
UsePAM no
SetEnv PATH={folder}/bin:/usr/local/bin:/usr/bin:/bin {env}
"""
SSH = """
Host *
  IdentityFile {folder}/key
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""


def why_not(*tools: str) -> str:
    """Empty where such hosts can be made and the tools are there; else what is missing."""
    for tool in (*tools, "sshd", "ip", "unshare"):
        if shutil.which(tool, path=PATHS) is None:
            return f"no {tool}: tests/make_test.py knows its Debian package"
    if os.geteuid() != 0:
        return "network namespaces need root"
    if subprocess.run(["unshare", "-nuimpf", "true"], check=False, capture_output=True).returncode:
        return "namespaces are not allowed here (unshare -nuimpf)"
    if not Path("/etc/machine-id").is_file() or not Path("/sys/bus/pci/devices").is_dir():
        return "no /etc/machine-id or /sys/bus/pci/devices to put the hosts' own in place of"
    return ""


def do(*words: object) -> None:
    """Run a command that must not fail."""
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


@dataclass
class Net:
    """One host that launches, and others with accelerators.

    ``bin`` is first on their PATH; ``env`` is in every login of theirs.

    ``daemons``: what runs on a host beside its sshd, as one line of shell.
    """

    folder: Path
    gpus: tuple[str, ...] = ("gpu-a", "gpu-b")
    env: Mapping[str, str] = field(default_factory=dict)
    daemons: Mapping[str, str] = field(default_factory=dict)
    spaces: dict[str, int] = field(default_factory=dict)  # inodes of their network namespaces

    def __post_init__(self) -> None:
        """Make keys, and the folders that the hosts see."""
        self.bin.mkdir()
        (self.folder / "ssh_config").write_text(SSH.format(folder=self.folder))
        for key in ("key", "host_key"):
            do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / key)
        public = " ".join((self.folder / "host_key.pub").read_text().split()[:2])
        lines = [f"{address} {public}\n" for address in self.addresses.values()]
        (self.folder / "known_hosts").write_text("".join(lines))
        lines = [f"{address} {name}\n" for name, address in self.addresses.items()]
        (self.folder / "hosts").write_text("".join(["127.0.0.1 localhost\n", *lines]))

    @property
    def addresses(self) -> dict[str, str]:
        """Of all hosts, by name."""
        return {name: f"{NETWORK}.{at}" for at, name in enumerate((HEAD, *self.gpus), 11)}

    @property
    def bin(self) -> Path:
        """Programs that only these hosts have."""
        return self.folder / "bin"

    def tool(self, name: str, script: str) -> None:
        """Put a shell script on the hosts' PATH."""
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / name).chmod(0o755)

    def accelerators(self, vendor: str, kind: str, count: int) -> None:
        """What their PCI bus shows: ``vendor`` and class, as sysfs prints them."""
        for number in range(count):
            card = self.folder / "pci" / f"0000:{0x0A + number:02x}:00.0"
            card.mkdir(parents=True)
            (card / "vendor").write_text(f"{vendor}\n")
            (card / "class").write_text(f"{kind}\n")

    # --- running ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def running(self) -> Iterator[Net]:
        """The hosts are up within; whatever ran on them is gone afterwards."""
        tag = f"cc{os.getpid() % 10000}"
        started: list[subprocess.Popen[bytes]] = []
        try:
            do("ip", "link", "add", f"{tag}br", "type", "bridge")
            do("ip", "addr", "add", f"{NETWORK}.1/24", "dev", f"{tag}br")
            do("ip", "link", "set", f"{tag}br", "up")
            for name in self.addresses:
                started.append(self._start(name, f"{tag}-{name}"))
            self._listen()
            yield self
        finally:
            for pid in (pid for pids in self._pids().values() for pid in pids):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for each in started:
                each.wait()
            # The kernel takes its time to empty a namespace that is gone: the wires go by name, so
            # that the next test of this process can have theirs.
            gone = [
                ("link", "del", f"{tag}br{at.rpartition('.')[2]}") for at in self.addresses.values()
            ]
            gone += [("netns", "del", f"{tag}-{name}") for name in self.addresses]
            for words in (*gone, ("link", "del", f"{tag}br")):
                subprocess.run(["ip", *words], check=False, capture_output=True)

    def _start(self, name: str, space: str) -> subprocess.Popen[bytes]:
        address = self.addresses[name]
        number = address.rpartition(".")[2]
        bridge = f"{space.partition('-')[0]}br"
        wire = f"{bridge}{number}"
        do("ip", "netns", "add", space)
        do("ip", "link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", space)
        do("ip", "link", "set", wire, "master", bridge, "up")
        inside = ("ip", "netns", "exec", space)
        do(*inside, "ip", "addr", "add", f"{address}/24", "dev", "eth0")
        do(*inside, "ip", "link", "set", "eth0", "up")
        do(*inside, "ip", "link", "set", "lo", "up")
        self.spaces[name] = Path(f"/run/netns/{space}").stat().st_ino
        (self.folder / f"{name}.id").write_text(f"{int(number):032x}\n")
        (self.folder / f"{name}.boot").write_text(f"{uuid.uuid4()}\n")
        config = self.folder / f"{name}.sshd"
        env = " ".join(f"{key}={value}" for key, value in self.env.items())
        config.write_text(SSHD.format(folder=self.folder, address=address, env=env))
        seen = {
            f"{name}.id": "/etc/machine-id",
            f"{name}.boot": "/proc/sys/kernel/random/boot_id",  # else MPI takes all for one host
            "hosts": "/etc/hosts",
            "pci": "/sys/bus/pci/devices",
        }
        binds = [f"mount --bind {self.folder}/{mine} {theirs}" for mine, theirs in seen.items()]
        last = f"exec /usr/sbin/sshd -D -e -f {config}"
        binds.append("mount -t tmpfs tmpfs /dev/shm")
        start = " && ".join([f"hostname {name}", *binds, self.daemons.get(name, "") + last])
        with (self.folder / f"{name}.log").open("wb") as log:
            words = [*inside, "unshare", "-uimpf", "--mount-proc", "sh", "-c", start]
            return subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def _listen(self) -> None:
        def answers(address: str) -> bool:
            words = ["ssh", "-F", str(self.folder / "ssh_config"), f"root@{address}", "true"]
            return subprocess.run(words, check=False, capture_output=True).returncode == 0

        until(lambda: all(map(answers, self.addresses.values())), 60)

    def processes(self, *names: str) -> dict[str, set[str]]:
        """Which programs of these names run on which hosts."""
        found: dict[str, set[str]] = {}
        for host, pids in self._pids().items():
            for pid in pids:
                with contextlib.suppress(OSError):
                    program = Path(f"/proc/{pid}/comm").read_text().strip()
                    if program in names:
                        found.setdefault(program, set()).add(host)
        return found

    def _pids(self) -> dict[str, list[int]]:
        by_space = {space: host for host, space in self.spaces.items()}
        found: dict[str, list[int]] = {}
        for each in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                host = by_space.get((each / "ns/net").stat().st_ino)
                if host is not None:
                    found.setdefault(host, []).append(int(each.name))
        return found

    def verdicts(self, check: str) -> list[dict[str, Any]]:
        """What the newest run says of a check."""
        document = json.loads((self.folder / "reports/latest/results.json").read_text())
        return [each for each in document["verdicts"] if each["check"] == check]

    # --- commcheck -------------------------------------------------------------------------------

    def commcheck(
        self,
        check: str | Mapping[str, Any],
        variables: Mapping[str, Any],
        *options: str,
        layer: str = "physical",
    ) -> subprocess.Popen[bytes]:
        """Start a run of one check, as a play asks it, on the hosts that have accelerators."""
        at = {name: {"ansible_host": address} for name, address in self.addresses.items()}
        shared = {
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self.folder / "key"),
            "commcheck_launch_host": HEAD,
            **variables,
        }
        gpus = {name: at[name] for name in self.gpus}
        tree = {"head": {"hosts": {HEAD: at[HEAD]}}, "gpu": {"hosts": gpus}}
        text = yaml.safe_dump({"all": {"vars": shared, "children": tree}})
        (self.folder / "inventory.yaml").write_text(text)
        plays = [{"layer": layer, "hosts": "gpu", "checks": [check]}]
        book = {"name": "wire", "allow": ["load"], "plays": plays}
        (self.folder / "wire.yaml").write_text(yaml.safe_dump(book, sort_keys=False))
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


def until(is_so: Callable[[], bool], seconds: float) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.2)

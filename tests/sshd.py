"""Real OpenSSH servers on loopback, as targets of tests: ``SshdFleet``."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import yaml

from commcheck.model import Host

SSHD = "/usr/sbin/sshd"
REMOTE = Path(
    "/mnt"
)  # where the fleet's folder is seen by its hosts, whoever may not look into /tmp


@functools.cache
def why_no_sshd() -> str:
    """Empty where real servers can be started; else the reason for a skip."""
    if not os.access(SSHD, os.X_OK):
        return f"no {SSHD} (Debian: openssh-server)"
    if os.geteuid() != 0:
        return "sshd for test users needs root"
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        return "private mount namespaces are not allowed here (unshare -m)"
    return ""


@dataclass
class Server:
    """One running sshd, which is a host of its own: address, host key, /etc/passwd, /sys/class.

    ``bin`` is first on the remote PATH, before the fleet's shared folder and the system's.
    ``sys_class`` replaces /sys/class for what runs there, where the fleet was made with ``sysfs``.
    """

    address: str
    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    keys: dict[str, Path] = field(default_factory=dict)  # host key files by type

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def sys_class(self) -> Path:
        return self.folder / "class"

    @property
    def log(self) -> str:
        """What sshd logged, at DEBUG1: it names every login tried, channel and command."""
        return (self.folder / "sshd.log").read_text(errors="replace")

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def public_key(self, kind: str = "ed25519") -> str:
        """Type and base64 of a host key."""
        return " ".join(Path(f"{self.keys[kind]}.pub").read_text().split()[:2])

    def fingerprint(self, kind: str = "ed25519") -> str:
        """``SHA256:...`` as ssh-keygen prints it."""
        words = _run("ssh-keygen", "-lf", str(self.keys[kind])).split()
        return words[1]

    def known_hosts_line(self, kind: str = "ed25519") -> str:
        """Its line in a known_hosts file."""
        return f"[{self.address}]:{self.port} {self.public_key(kind)}\n"

    def tool(self, name: str, script: str) -> None:
        """Put a fake tool first on this host's PATH. ``script``: sh, without the ``#!`` line."""
        write_tool(self.bin / name, script)

    def rail(
        self,
        hca: str,
        netdev: str | None,
        *,
        pci: str = "0000:17:00.0",
        driver: str = "mlx5_core",
        link_layer: str = "Ethernet",
        state: str = "4: ACTIVE",
        phys_state: str = "5: LinkUp",
        rate: str = "400 Gb/sec (4X NDR)",
        mtu: int = 4200,
        operstate: str = "up",
        speed_mbits: int = 400_000,
        gids: Sequence[tuple[str, str]] = (
            ("fe80:0000:0000:0000:0ac0:ebff:fe00:0001", "IB/RoCE v1"),
            ("fe80:0000:0000:0000:0ac0:ebff:fe00:0001", "RoCE v2"),
            ("0000:0000:0000:0000:0000:ffff:c000:0201", "IB/RoCE v1"),
            ("0000:0000:0000:0000:0000:ffff:c000:0201", "RoCE v2"),
        ),
    ) -> None:
        """Add one NIC port to the fake sysfs, with the link from HCA to PCI device to netdev.

        ``gids``: (GID, type) by index; Linux lists as many as the table has, the rest are zero.
        """
        device = self.sys_class / "devices" / f"pci{pci.rpartition(':')[0]}" / pci
        _write(device / "vendor", "0x15b3\n")
        # The folder above is the slot's: what it can do stands beside what the card can.
        for place, word in ((device, "current"), (device, "max"), (device.parent, "max")):
            _write(place / f"{word}_link_speed", "32.0 GT/s PCIe\n")
            _write(place / f"{word}_link_width", "16\n")
        drivers = self.sys_class / "drivers" / driver
        drivers.mkdir(parents=True, exist_ok=True)
        if not (device / "driver").exists():
            (device / "driver").symlink_to(os.path.relpath(drivers, device))
        # As in Linux: the real folder is below the PCI device, the class folder links to it.
        root = device / "infiniband" / hca
        port = root / "ports" / "1"
        for name, value in {
            "link_layer": link_layer,
            "state": state,
            "phys_state": phys_state,
            "rate": rate,
        }.items():
            _write(port / name, f"{value}\n")
        for index, (gid, kind) in enumerate(gids):
            _write(port / "gids" / str(index), f"{gid}\n")
            _write(port / "gid_attrs" / "types" / str(index), f"{kind}\n")
            if netdev:
                _write(port / "gid_attrs" / "ndevs" / str(index), f"{netdev}\n")
        (root / "device").symlink_to("../..")
        _link(self.sys_class / "infiniband" / hca, root)
        if netdev is None:
            return
        net = device / "net" / netdev
        for name, value in {
            "mtu": str(mtu),
            "operstate": operstate,
            "carrier": "1" if operstate == "up" else "0",
            "speed": str(speed_mbits),
            "dev_port": "0",
            "address": "08:c0:eb:00:00:01",
        }.items():
            _write(net / name, f"{value}\n")
        (net / "device").symlink_to("../..")
        _link(self.sys_class / "net" / netdev, net)


class SshdFleet:
    """Starts sshd processes and says how to reach them; ends them and all they started.

    Example::

        with SshdFleet(tmp_path, n=8, sysfs=True) as fleet:
            fleet.tool("nvidia-smi", "echo 'GPU 0: ...'")         # on every host
            fleet.hosts_by_name["host-03"].tool("ethtool", "exit 1")  # on one
            fleet.hosts_by_name["host-03"].rail("mlx5_0", "eth2")
            run("commcheck", "run", "-i", fleet.inventory, "--known-hosts", fleet.known_hosts)

    Tools and sysfs may be written before or after the start. ``servers`` (default ``n``): fewer
    servers than names, several inventory names being one machine then. Every server listens on
    its own 127.x address and port and runs in a private mount namespace with:

    - its own /etc/passwd: the user ``user`` with ``shell`` and an empty home. For "root" the
      files are root's; any other name gets uid 54321;
    - its own /etc/machine-id, where there is one: loads of other tests do not hold its lock;
    - with ``sysfs``, ``Server.sys_class`` in the place of /sys/class (rails: ``Server.rail``).

    ``config``: further lines for sshd_config, e.g. ``MaxStartups 10:30:60``. ``variables``: what
    every host gets in the inventory. ``key_types``: the host keys of each server.

    Everything lies below ``folder``; attributes: ``inventory`` (YAML file), ``known_hosts``,
    ``key`` (private key, accepted by all), ``names`` in inventory order, ``hosts_by_name``,
    ``servers``, ``log`` of all.
    """

    def __init__(
        self,
        folder: Path,
        n: int = 1,
        *,
        servers: int | None = None,
        config: Sequence[str] = (),
        user: str = "root",
        shell: str = "/bin/sh",
        sysfs: bool = False,
        key_types: Sequence[str] = ("ed25519",),
        variables: Mapping[str, object] | None = None,
        prefix: str = "host",
        net: int = 0,
    ) -> None:
        self.folder = folder / f"fleet-{prefix}"
        self.names = [f"{prefix}-{number:02d}" for number in range(1, n + 1)]
        self.key = self.folder / "client_key"
        self.known_hosts = self.folder / "known_hosts"
        self.inventory = self.folder / "inventory.yaml"
        self.shared_bin = self.folder / "bin"
        self._config = tuple(config)
        self._user, self._shell, self._sysfs = user, shell, sysfs
        self._key_types = tuple(key_types)
        self._variables = dict(variables or {})
        count = servers or n
        self.servers = [
            Server(f"127.{10 + net}.{number // 250}.{number % 250 + 1}", self.folder / f"s{number}")
            for number in range(count)
        ]
        self.hosts_by_name = {
            name: self.servers[number % count] for number, name in enumerate(self.names)
        }
        for place in (self.shared_bin, *(each.bin for each in self.servers)):
            place.mkdir(parents=True)
        for server in self.servers:
            (server.sys_class / "net").mkdir(parents=True)

    def __enter__(self) -> Self:
        Path("/run/sshd").mkdir(exist_ok=True)
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key))
        shutil.copy(f"{self.key}.pub", self.folder / "authorized_keys")
        try:
            for server in self.servers:
                self.start(server)
        except BaseException:
            self.__exit__()
            raise
        self.known_hosts.write_text(
            "".join(each.known_hosts_line(self._key_types[0]) for each in self.servers)
        )
        self.write_inventory()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self.servers:
            self.kill(server)

    # --- what tests ask -------------------------------------------------------------------------

    @property
    def log(self) -> str:
        """The logs of all servers."""
        return "".join(each.log for each in self.servers)

    def tool(self, name: str, script: str) -> None:
        """Put a fake tool on the PATH of every host, behind each host's own."""
        write_tool(self.shared_bin / name, script)

    def variables(self, name: str) -> dict[str, object]:
        """What the inventory says of one host."""
        server = self.hosts_by_name[name]
        return {
            "ansible_host": server.address,
            "ansible_port": server.port,
            "ansible_user": self._user,
            "ansible_ssh_private_key_file": str(self.key),
            **self._variables,
        }

    def hosts(self) -> list[Host]:
        """The inventory as ``Host`` values."""
        return [Host(name, self.variables(name)) for name in self.names]

    def write_inventory(self, extra: Mapping[str, Mapping[str, object]] | None = None) -> None:
        """Write ``inventory`` anew; ``extra``: more variables by host name."""
        hosts = {
            name: {**self.variables(name), **(extra or {}).get(name, {})} for name in self.names
        }
        text = yaml.safe_dump({"all": {"hosts": hosts}}, sort_keys=False)
        self.inventory.write_text(text)

    def count(self, words: str) -> int:
        """How many lines of all logs hold ``words``."""
        return sum(words in line for line in self.log.splitlines())

    # --- servers --------------------------------------------------------------------------------

    def start(self, server: Server) -> None:
        """Start one server (again, after ``kill``: with new host keys on the same port)."""
        server.keys = {}
        for kind in self._key_types:
            path = server.folder / f"host_key_{kind}"
            for old in (path, Path(f"{path}.pub")):
                old.unlink(missing_ok=True)
            _run("ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(path))
            server.keys[kind] = path
        if not server.port:
            server.port = free_port(server.address)
        binds = [(self._passwd(server), "/etc/passwd"), (self.folder, str(REMOTE))]
        machine_id = Path("/etc/machine-id")
        if machine_id.is_file():
            own = server.folder / "machine-id"
            own.write_text(f"{uuid.uuid4().hex}\n")
            binds.append((own, str(machine_id)))
        if self._sysfs:
            binds.append((server.sys_class, "/sys/class"))
        mounts = " && ".join(f"mount --bind '{here}' {there}" for here, there in binds)
        sshd = f"exec {SSHD} -D -f '{self._sshd_config(server)}' -E '{server.folder}/sshd.log'"
        server.process = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", f"{mounts} && {sshd}"],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait_for_port(server.address, server.port)

    def kill(self, server: Server) -> None:
        """End one server, its connections, and all that was started over them."""
        if server.process is None:
            return
        for pid in [server.pid, *descendants(server.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        server.process.wait(10)
        server.process = None

    def _passwd(self, server: Server) -> Path:
        home = server.folder / "home"
        home.mkdir(exist_ok=True)
        uid = 0 if self._user == "root" else 54321
        os.chown(home, uid, uid)
        line = f"{self._user}:x:{uid}:{uid}::{REMOTE / server.folder.name / 'home'}:{self._shell}\n"
        others = Path("/etc/passwd").read_text().splitlines(keepends=True)
        kept = [each for each in others if not each.startswith(f"{self._user}:")]
        path = server.folder / "passwd"
        path.write_text(line + "".join(kept))
        return path

    def _sshd_config(self, server: Server) -> Path:
        tools = f"{REMOTE / server.folder.name / 'bin'}:{REMOTE / 'bin'}"
        lines = [
            *self._config,  # sshd takes the first value of an option
            f"ListenAddress {server.address}",
            f"Port {server.port}",
            *(f"HostKey {each}" for each in server.keys.values()),
            f"AuthorizedKeysFile {REMOTE}/authorized_keys",
            "PidFile none",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin yes",
            "UseDNS no",
            "LogLevel DEBUG1",
            "MaxStartups 200",
            f"SetEnv PATH={tools}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        ]
        config = server.folder / "sshd_config"
        config.write_text("".join(f"{line}\n" for line in lines))
        return config


@contextlib.contextmanager
def odd_server(
    answer: bytes = b"", *, every_s: float = 0.0, hang_up: bool = False
) -> Iterator[int]:
    """A port of 127.0.0.1 where something answers that is no working sshd.

    It sends ``answer`` (over and over, every ``every_s`` seconds, if that is not 0), then says
    nothing more, or hangs up.
    """
    over = threading.Event()

    def serve(sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            sock.sendall(answer)
            while every_s and not over.wait(every_s):
                sock.sendall(answer)
            if not hang_up:
                over.wait()

    def accept() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=serve, args=(sock,), daemon=True))
            threads[-1].start()

    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        yield listener.getsockname()[1]
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        for thread in (accepting, *threads):
            thread.join(5)


def marked(mark: str) -> list[int]:
    """The processes of this machine whose COMMCHECK_MARK begins with ``mark``."""
    wanted = f"COMMCHECK_MARK={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(
                each.startswith(wanted) for each in (entry / "environ").read_bytes().split(b"\0")
            ):
                found.append(int(entry.name))
    return found


def descendants(pid: int) -> list[int]:
    """Every process below ``pid``, also those in sessions of their own."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def send_signal(pids: Iterable[int], number: int) -> None:
    """To all of them but those that have ended since they were looked for."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def free_port(address: str = "127.0.0.1") -> int:
    """A port nobody listens on just now."""
    with socket.socket() as sock:
        sock.bind((address, 0))
        return int(sock.getsockname()[1])


def wait_for_port(address: str, port: int, limit_s: float = 10.0) -> None:
    """Return once somebody listens there."""
    ends = time.monotonic() + limit_s
    while True:
        try:
            socket.create_connection((address, port), 1).close()
        except OSError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.02)
        else:
            return


def write_tool(path: Path, script: str) -> None:
    """An executable sh script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(target, link.parent))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

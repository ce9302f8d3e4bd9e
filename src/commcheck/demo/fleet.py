"""The embedded fleet, running: folders, servers, keys, inventory, and the way to each host."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

import paramiko
import yaml

from commcheck.collect.base import Ask, Frame, Request, Sink
from commcheck.collect.ssh import SshSettings, SshVisitor
from commcheck.command import Command
from commcheck.demo import folder as host_folder
from commcheck.demo import nccl_log
from commcheck.demo.exchange import Exchange
from commcheck.demo.job import leads_job
from commcheck.demo.server import ADDRESS, HostServer
from commcheck.demo.state import HostState
from commcheck.model import Host

INVENTORY = "embedded-fleet.yaml"
"""What reports name as the inventory."""

USER = "demo"


_MEMORY: Final = "/dev/shm"  # noqa: S108 - mkdtemp makes our own in it
_HOST_BYTES: Final = 4 << 20


def _place(hosts: int) -> str:
    """Where the folder is made: in memory where that is offered, unless TMPDIR says where.

    A host is hundreds of files of a few bytes, and some disks take a second for them.
    """
    if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK | os.X_OK):
        memory = os.statvfs(_MEMORY)
        # Containers often mount it without the right to execute, and small.
        is_roomy = memory.f_bavail * memory.f_frsize > hosts * _HOST_BYTES
        if is_roomy and not memory.f_flag & os.ST_NOEXEC:
            return _MEMORY
    # Readers take sysfs paths without blanks only; no such path holds one on a real host.
    base = tempfile.gettempdir()
    return base if base.split() == [base] else "/tmp"  # noqa: S108 - as above


class Fleet:
    """Starts one server for each host and ends them; everything lies in one temporary folder.

    Example::

        with Fleet([healthy(1), healthy(2)]) as fleet:
            inventory = load((INVENTORY,), cwd=fleet.folder)
            DemoVisitor(fleet, fleet.ssh_settings(run_id)).visit(host, ask, sink)
    """

    def __init__(self, states: Sequence[HostState], queries: Iterable[str] = ()) -> None:
        """``queries``: the columns that checks ask of ``nvidia-smi --query-gpu``."""
        self._states = {state.name: state for state in states}
        self._queries = tuple(queries)
        self._servers: list[HostServer] = []
        self._closed: list[socket.socket] = []
        self._ports: dict[str, int] = {}
        self._exchange: Exchange | None = None
        self._client_key = paramiko.ECDSAKey.generate()
        self.folder = Path()

    def __enter__(self) -> Self:
        self.folder = Path(
            tempfile.mkdtemp(prefix="commcheck-demo-", dir=_place(len(self._states)))
        )
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        if self._exchange is not None:
            self._exchange.close()
        for sock in self._closed:
            sock.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def hosts(self) -> Mapping[str, HostState]:
        """Every host's state as it was at the start, by name."""
        return self._states

    def root(self, host: str) -> Path:
        """What a host takes for its /."""
        return self.folder / host / "root"

    def reached(self, host: Host) -> Host:
        """The host with the address at which it listens."""
        at = {"ansible_host": ADDRESS, "ansible_port": self._ports[host.name]}
        return replace(host, variables={**host.variables, **at})

    def ssh_settings(self, settings: SshSettings) -> SshSettings:
        """The settings with this fleet's keys; nothing of the user's own SSH is looked at."""
        return replace(
            settings,
            host_keys="strict",
            known_hosts=(self.folder / "known_hosts",),
            ssh_config=self.folder / "ssh_config",
            key_files=(self.folder / "client_key",),
            user=USER,
        )

    def _start(self) -> None:
        key = self.folder / "client_key"
        key.touch(0o600)
        self._client_key.write_private_key_file(str(key))
        (self.folder / "ssh_config").touch()
        self._exchange = Exchange(self.folder, self._states)
        known, hosts = [], {}
        for state in self._states.values():
            port, host_key = self._host(state)
            known.append(f"[{ADDRESS}]:{port} {host_key.get_name()} {host_key.get_base64()}\n")
            self._ports[state.name] = port
            # Where it listens today is no fact of the fleet: its inventory is the same every day.
            declared = {"commcheck_nics": [nic.hca for nic in state.nics], **dict(state.declared)}
            if leads_job(state):
                declared["commcheck_ras"] = True
            hosts[state.name] = declared
        (self.folder / "known_hosts").write_text("".join(known))
        tree = {"all": {"children": {"gpu": {"hosts": hosts}}}}
        (self.folder / INVENTORY).write_text(yaml.safe_dump(tree, sort_keys=False))

    def _host(self, state: HostState) -> tuple[int, paramiko.PKey]:
        """Render and start one host: its port, and the host key that it is known by."""
        known_key = paramiko.ECDSAKey.generate()
        if state.reach == "down":
            # Bound and not listening: refused, and nobody else can get the port.
            closed = socket.socket()
            self._closed.append(closed)
            closed.bind((ADDRESS, 0))
            return int(closed.getsockname()[1]), known_key
        where = self.folder / state.name
        host_folder.write(state, where, self._queries)
        for log in nccl_log.logs(state, tuple(self._states.values())):
            path = where / "root" / log.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(log.text)
        other = paramiko.ECDSAKey.generate() if state.reach != "up" else known_key
        server = HostServer(
            host_key=other if state.reach == "other-key" else known_key,
            accepts=other if state.reach == "refuses-key" else self._client_key,
            environ=_environ(where),
        )
        self._servers.append(server)
        return server.port, known_key


def _environ(where: Path) -> Mapping[str, str]:
    """What a login gives a command: the fake tools first, and nothing of our own environment."""
    return {
        "PATH": f"{where / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(where / "home"),
        "USER": USER,
        "LOGNAME": USER,
        "SHELL": "/bin/sh",
    }


class DemoVisitor:
    """Visits hosts of the fleet over SSH as any host, each with its own root before /sys and /proc.

    That root is taken out of the answers again, so that they read as those of a real host.
    """

    def __init__(self, fleet: Fleet, settings: SshSettings) -> None:
        self._fleet = fleet
        self._settings = fleet.ssh_settings(settings)
        self._visitors: dict[str, SshVisitor] = {}
        self._stopped = False

    def visit(self, host: Host, ask: Ask, sink: Sink) -> None:
        """See ``Visitor``."""
        root = str(self._fleet.root(host.name))
        visitor = SshVisitor(replace(self._settings, sysfs_root=root))
        self._visitors[host.name] = visitor
        if self._stopped:
            visitor.stop()
        strip = _stripper(os.fsencode(root))

        def hand_over(*frames: Frame) -> None:
            sink(*(strip(frame) for frame in frames if frame.key != _TIME_PASSES.key))

        visitor.visit(
            self._fleet.reached(host),
            lambda frame: with_time_between(ask(strip(frame))),
            hand_over,
        )

    def errand(self, session: str, deadline_s: float) -> DemoVisitor:
        """See ``Traveller``."""
        settings = replace(self._settings, session=session, host_deadline_s=deadline_s)
        return DemoVisitor(self._fleet, settings)

    def stop(self) -> None:
        """See ``Visitor``."""
        self._stopped = True
        for visitor in list(self._visitors.values()):
            visitor.stop()


_TIME_PASSES = Request(Command((host_folder.TIME_PASSES,)))


def with_time_between(requests: Sequence[Request]) -> list[Request]:
    """The requests; on the simulated host time passes after the readings at the start."""
    first = [each for each in requests if each.at == "start"]
    rest = [each for each in requests if each.at != "start"]
    return [*first, *([_TIME_PASSES] if first else []), *rest]


def _stripper(root: bytes) -> Callable[[Frame], Frame]:
    def strip(frame: Frame) -> Frame:
        return replace(
            frame,
            stdout=frame.stdout.replace(root, b""),
            stderr=frame.stderr.replace(root, b""),
        )

    return strip

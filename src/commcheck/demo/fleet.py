"""The embedded fleet, running: folders, servers, keys, inventory, and the way to each host."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import paramiko
import yaml

from commcheck.collect.base import Ask, Frame, Sink
from commcheck.collect.ssh import SshSettings, SshVisitor
from commcheck.demo import folder as host_folder
from commcheck.demo.server import ADDRESS, HostServer
from commcheck.demo.state import LINE_RATE_GBITS, HostState
from commcheck.model import Host

INVENTORY = "embedded-fleet.yaml"
"""What reports name as the inventory."""

USER = "demo"


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
        self._client_key = paramiko.ECDSAKey.generate()
        self.folder = Path()

    def __enter__(self) -> Self:
        # Readers take sysfs paths without blanks only; no such path holds one on a real host.
        base = tempfile.gettempdir()
        plain = base if base.split() == [base] else "/tmp"  # noqa: S108 - mkdtemp makes our own
        self.folder = Path(tempfile.mkdtemp(prefix="commcheck-demo-", dir=plain))
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        for sock in self._closed:
            sock.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def root(self, host: str) -> Path:
        """What a host takes for its /."""
        return self.folder / host / "root"

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
        known, hosts = [], {}
        for state in self._states.values():
            port, host_key = self._host(state)
            known.append(f"[{ADDRESS}]:{port} {host_key.get_name()} {host_key.get_base64()}\n")
            hosts[state.name] = {
                "ansible_host": ADDRESS,
                "ansible_port": port,
                "commcheck_nics": [nic.hca for nic in state.nics],
            }
        (self.folder / "known_hosts").write_text("".join(known))
        group = {"hosts": hosts, "vars": {"commcheck_line_rate_gbits": LINE_RATE_GBITS}}
        tree = {"all": {"children": {"gpu": group}}}
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
        visitor.visit(host, lambda frame: ask(strip(frame)), lambda frame: sink(strip(frame)))

    def stop(self) -> None:
        """See ``Visitor``."""
        self._stopped = True
        for visitor in list(self._visitors.values()):
            visitor.stop()


def _stripper(root: bytes) -> Callable[[Frame], Frame]:
    def strip(frame: Frame) -> Frame:
        return replace(
            frame,
            stdout=frame.stdout.replace(root, b""),
            stderr=frame.stderr.replace(root, b""),
        )

    return strip

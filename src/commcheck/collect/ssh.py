"""Visits over SSH: one Fabric connection, one channel, one exec per host."""

from __future__ import annotations

import contextlib
import copy
import os
import random
import secrets
import select
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from commcheck.collect.base import Ask, Frame, Request, Sink
from commcheck.collect.dial import Dialer, Keys, Progress
from commcheck.collect.failures import RETRIED, Stage
from commcheck.collect.gateways import Gateways
from commcheck.collect.hostkeys import HostKeys
from commcheck.collect.lifetime import Supervisor, Visit
from commcheck.collect.session import Chunk, Session, command_line, converse
from commcheck.collect.sshconfig import SshConfig
from commcheck.collect.target import Defaults, Target, resolve
from commcheck.collect.wires import Buffered, ProxyCommand, tcp
from commcheck.errors import (
    HostDeadline,
    HostError,
    Interrupted,
    InventoryError,
    Unreachable,
)
from commcheck.inventory.endpoint import endpoint
from commcheck.lazy import dataclass
from commcheck.model import Host

if TYPE_CHECKING:
    from fabric import Connection
    from paramiko import Channel

RETRY_DELAYS_S: Final = (0.4, 1.0, 2.5)
"""Middle of the wait before each new try; the last one repeats. Half to one and a half of it."""

_CHUNK: Final = 65536

_GATHER_S: Final = 0.02
"""How long what a host says may wait for more of it: to be woken costs more than a packet."""


def warm() -> None:
    """Load what connections need now: processes that are forked later share it, and where memory
    ends meanwhile that is told. In a thread beside others CPython may never come out of it.
    """
    import fabric  # noqa: F401 - for its own imports


def _silent(_line: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSettings:
    """How hosts are reached. What the inventory says of a host wins, but for the host key mode.

    ``host_keys``: "strict", "accept-new", "pinned" or "insecure" for all; "" leaves it to the
    inventory and ``~/.ssh/config``, and is strict where they are silent. ``known_hosts``: instead
    of the user's and the system's files. ``note`` is told one line for each key that was accepted
    or not checked, from any thread.
    """

    run_id: str
    session: str = ""  # what its sessions are called; "": each by a name of its own
    host_keys: str = ""
    known_hosts: tuple[Path, ...] = ()
    ssh_config: Path | None = None  # None: ~/.ssh/config
    key_files: tuple[Path, ...] = ()
    user: str = ""
    agent: bool = False
    look_for_keys: bool = False
    connect_timeout_s: float = 10.0  # for TCP, for banner and key exchange, for the login: each
    host_deadline_s: float = 120.0
    become: bool = False
    sysfs_root: str = ""
    retries: int = 3
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Callable[[], float] = time.monotonic
    rng: random.Random = field(default_factory=random.Random)
    note: Callable[[str], None] = _silent


class SshVisitor:
    """Visits hosts over SSH, from as many threads as there are visits at a time."""

    def __init__(self, settings: SshSettings) -> None:
        self._settings = settings
        own = Path.home() / ".ssh" / "config"
        self._config = SshConfig(settings.ssh_config or own, found=settings.ssh_config is None)
        self._defaults = Defaults(
            host_keys=settings.host_keys,
            known_hosts=settings.known_hosts,
            key_files=settings.key_files,
            user=settings.user,
            agent=settings.agent,
            look_for_keys=settings.look_for_keys,
        )
        self._dialer = Dialer(
            HostKeys(settings.note), Keys(), settings.environ, settings.connect_timeout_s
        )
        self._supervisor = Supervisor(settings.clock)
        self._gateways = Gateways(self._open_gateway, settings.clock)
        self._stopped = False

    def visit(self, host: Host, ask: Ask, sink: Sink) -> None:
        """See ``Visitor``. Takes ``host_deadline_s`` and 2 s at most, whatever the host does."""
        if self._stopped:
            raise Interrupted("interrupted", "the run was stopped before this host was visited")
        settings = self._settings
        visit = Visit(host.name, settings.host_deadline_s, settings.clock)
        with self._supervisor.watching(visit):
            if self._stopped:  # stop() came between, and did not see this visit
                visit.end("stop")
            try:
                self._visit(host, visit, ask, sink)
            finally:
                visit.end("done")

    def errand(self, session: str, deadline_s: float) -> SshVisitor:
        """See ``Traveller``. Jump hosts are shared."""
        other = copy.copy(self)
        other._settings = replace(self._settings, session=session, host_deadline_s=deadline_s)
        other._supervisor = Supervisor(self._settings.clock)
        return other

    def stop(self) -> None:
        """End every session: the runner on the host sees its stdin close, and clears up."""
        self._stopped = True
        self._supervisor.stop()

    def close(self) -> None:
        """Let go of the jump hosts, after the last visit."""
        self._gateways.close()

    def _visit(self, host: Host, visit: Visit, ask: Ask, sink: Sink) -> None:
        try:
            where = endpoint(host)
        except InventoryError as error:
            raise Unreachable("inventory", str(error)) from error
        target = resolve(where, self._config, self._defaults)
        connection, progress = self._connect(target, visit)

        def ask_and_gather(subjects: Frame) -> Sequence[Request]:
            requests = ask(subjects)
            connection.transport.sock.gather()  # from here on nothing waits for a single packet
            return requests

        session = Session(
            mark=f"{self._settings.run_id}.{self._settings.session or secrets.token_hex(5)}",
            become=self._settings.become or where.become,
            path=tuple(where.path),
            sysfs_root=self._settings.sysfs_root,
            deadline_s=visit.left_s(self._settings.host_deadline_s),
        )
        try:
            progress.step(Stage.CHANNEL, self._settings.connect_timeout_s)
            channel = connection.create_session()
            progress.step(Stage.EXEC, visit.left_s(self._settings.host_deadline_s))
            channel.exec_command(command_line(session))
            progress.step(Stage.TALK, visit.left_s(self._settings.host_deadline_s))
            pipe = ChannelPipe(channel)
            converse(pipe, session, ask_and_gather, sink, clock=self._settings.clock)
        except (HostError, OSError, EOFError, _ssh_error()) as error:
            raise self._told(error, visit, progress) from error

    # --- connecting -----------------------------------------------------------------------------

    def _connect(self, target: Target, visit: Visit) -> tuple[Connection, Progress]:
        """A connection, with new tries where sshd drops them at random. Raises ``HostError``."""
        for attempt in range(self._settings.retries + 1):
            progress = Progress(target.peer)
            try:
                return self._connect_once(target, visit, progress), progress
            except Exception as error:  # anything: what a server sends is parsed in there
                told = self._told(error, visit, progress)
                visit.drop()
                if told.code not in RETRIED or attempt == self._settings.retries:
                    raise told from error
            middle = RETRY_DELAYS_S[min(attempt, len(RETRY_DELAYS_S) - 1)]
            visit.pause(middle * self._settings.rng.uniform(0.5, 1.5))
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _connect_once(self, target: Target, visit: Visit, progress: Progress) -> Connection:
        if target.jumps:
            return self._through_jump(target, visit, progress)
        if target.proxy_command:
            return self._through_command(target, visit, progress)
        limit_s = visit.left_s(self._settings.connect_timeout_s)
        sock = tcp(target.address, target.port, limit_s, progress.step)
        wire = Buffered(sock)
        visit.hold(wire.close)
        return self._dialer.log_in(target, wire, visit, progress)

    def _through_jump(self, target: Target, visit: Visit, progress: Progress) -> Connection:
        lease = self._gateways.lease(target.jumps[-1], visit)
        try:
            with lease.turn(visit):
                limit_s = visit.left_s(self._settings.connect_timeout_s)
                progress.step(Stage.FORWARD, limit_s)
                sock = lease.connect(target.address, target.port, limit_s)
                visit.hold(sock.close)
                return self._dialer.log_in(target, sock, visit, progress)
        except Exception as error:
            told = self._told(error, visit, progress)
            if lease.is_alive or visit.was_cut:
                raise
            raise Unreachable("jump-host-lost", told.reason, told.remedy) from error

    def _through_command(self, target: Target, visit: Visit, progress: Progress) -> Connection:
        progress.step(Stage.TCP, self._settings.connect_timeout_s)
        proxy = ProxyCommand(target.proxy_command)
        visit.hold(proxy.close)
        try:
            return self._dialer.log_in(target, Buffered(proxy.sock), visit, progress)
        except Exception as error:
            told = self._told(error, visit, progress)
            if proxy.complaint:
                raise Unreachable(
                    told.code, f"{told.reason}; ProxyCommand: {proxy.complaint}", told.remedy
                ) from error
            raise

    def _open_gateway(self, jump: Target) -> tuple[Connection, Visit]:
        settings = self._settings
        visit = Visit(str(jump.peer), settings.host_deadline_s, settings.clock)
        with self._supervisor.watching(visit):
            if self._stopped:
                visit.end("stop")
            try:
                connection, _ = self._connect(jump, visit)
            except BaseException:
                visit.end("done")
                raise
        # From here on no deadline: it lives as long as hosts go through it.
        return connection, visit

    def _told(self, error: Exception, visit: Visit, progress: Progress) -> HostError:
        if visit.was_cut and not isinstance(error, HostDeadline):
            return visit.verdict(f"the stage {progress.stage} of {progress.peer}")
        return progress.explain(error)


def _ssh_error() -> type[Exception]:
    from paramiko import SSHException

    return SSHException


class _News(threading.Event):
    """An event that costs nothing to set again, which each packet does."""

    def set(self) -> None:
        if not self.is_set():
            super().set()


class ChannelPipe:
    """A session channel as the duplex stream of a conversation."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        # Set whenever either stream brings bytes or ends. The library's own way is a pipe for
        # each channel: two descriptors, and two system calls for every time it is waited for.
        self._news = _News()
        for buffer in (channel.in_buffer, channel.in_stderr_buffer):
            buffer.set_event(self._news)
        self._open: list[Any] = [("out", channel.recv), ("err", channel.recv_stderr)]

    def send(self, data: bytes) -> None:
        """Send all. Raises ``OSError`` where the host reads nothing for 30 s."""
        self._channel.settimeout(30.0)
        self._channel.sendall(data)

    def receive(self, timeout_s: float) -> Chunk | None:
        """The next bytes of either stream, in turn; None where none came within ``timeout_s``."""
        ends = time.monotonic() + timeout_s
        while True:
            self._news.clear()  # before the look: what comes after it is not missed
            found = self._take()
            if found is not None:
                return found
            left = ends - time.monotonic()
            if left <= 0 or not self._news.wait(left):
                return None
            # sshd makes a packet of each write of the shell: many are taken at once. No sleep(),
            # which waits for a time of the clock; this is a length, whatever the clock does.
            select.select((), (), (), min(left, _GATHER_S))

    def close(self) -> None:
        """End of file for the runner, which clears up and leaves."""
        with contextlib.suppress(OSError, EOFError):
            self._channel.close()

    def _take(self) -> Chunk | None:
        if not self._open:
            return Chunk("out", b"")
        self._channel.settimeout(0.0)
        for reader in list(self._open):
            stream, read = reader
            try:
                data = read(_CHUNK)
            except TimeoutError:
                continue
            # To the back: neither stream may starve the other.
            self._open.remove(reader)
            if data:
                self._open.append(reader)
            return Chunk(stream, data)
        return None

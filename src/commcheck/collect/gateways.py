"""Jump hosts: connections opened once and shared, so that a fleet does not knock a bastion down.

One connection carries up to 64 hosts at a time. It is opened before any of them is sent through
it (half-open, it would serve none), and at most 8 hosts shake hands over it at once.
"""

from __future__ import annotations

import contextlib
import errno
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import field
from typing import TYPE_CHECKING, Final

from commcheck.collect.lifetime import Visit
from commcheck.collect.target import Target
from commcheck.collect.wires import GATHER_S, REST_S
from commcheck.errors import HostError, Interrupted, Unreachable
from commcheck.lazy import dataclass

if TYPE_CHECKING:
    from fabric import Connection
    from paramiko import Channel

HOSTS_PER_GATEWAY: Final = 64
HANDSHAKES: Final = 8
FORGET_FAILURE_S: Final = 15.0
"""A jump host that failed is not tried again for this long: a thousand hosts wait behind it."""

Open = Callable[[Target], "tuple[Connection, Visit]"]
"""Opens the connection to a jump host. Raises ``HostError``."""


@dataclass(slots=True, eq=False)
class _Gateway:
    target: Target
    opened: Future[tuple[Connection, Visit]] = field(default_factory=Future)
    users: int = 0
    failed_at: float | None = None
    handshakes: threading.BoundedSemaphore = field(
        default_factory=lambda: threading.BoundedSemaphore(HANDSHAKES)
    )

    def is_usable(self, now: float) -> bool:
        if self.failed_at is not None:
            return now - self.failed_at < FORGET_FAILURE_S
        if not self.opened.done():
            return self.users < HOSTS_PER_GATEWAY
        connection, _ = self.opened.result()
        return self.users < HOSTS_PER_GATEWAY and connection.transport.is_active()


class Gateways:
    """The jump hosts of a run. Thread-safe."""

    def __init__(self, open_: Open, clock: Callable[[], float]) -> None:
        self._open = open_
        self._clock = clock
        self._lock = threading.Lock()
        self._all: list[_Gateway] = []

    def lease(self, jump: Target, visit: Visit) -> Lease:
        """A place on an open connection to ``jump``, held by ``visit``. Raises ``HostError``."""
        with self._lock:
            now = self._clock()
            gateway = next(
                (each for each in self._all if each.target == jump and each.is_usable(now)), None
            )
            if gateway is None:
                gateway = _Gateway(jump)
                self._all.append(gateway)
                # In a thread of its own: the first host's deadline is not the gateway's.
                threading.Thread(
                    target=self._fill, args=(gateway,), name=f"open {jump.peer}", daemon=True
                ).start()
            gateway.users += 1
        visit.hold(lambda: self._release(gateway))
        try:
            connection, _ = gateway.opened.result(timeout=visit.left_s(visit.limit_s))
        except FutureTimeout:
            raise visit.verdict(f"the jump host {jump.peer}") from None
        except HostError as error:
            # A run that was stopped makes no host unreachable: --resume would not ask it again.
            kind = Interrupted if isinstance(error, Interrupted) else Unreachable
            reason = f"jump host {jump.peer}: {error.reason}"
            raise kind(error.code, reason, error.remedy) from error
        return Lease(connection, gateway.handshakes)

    def close(self) -> None:
        """Close every connection; the hosts behind them must be done."""
        with self._lock:
            gateways, self._all = self._all, []
        for gateway in reversed(gateways):  # a gateway behind another was asked for later
            if gateway.opened.done() and gateway.opened.exception() is None:
                gateway.opened.result()[1].end("done")

    def _fill(self, gateway: _Gateway) -> None:
        try:
            gateway.opened.set_result(self._open(gateway.target))
        except BaseException as error:  # noqa: BLE001 - it is raised again in every waiting visit
            gateway.failed_at = self._clock()
            gateway.opened.set_exception(error)

    def _release(self, gateway: _Gateway) -> None:
        with self._lock:
            gateway.users -= 1


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to connect through a jump host."""

    _connection: Connection
    _handshakes: threading.BoundedSemaphore

    @contextlib.contextmanager
    def turn(self, visit: Visit) -> Iterator[None]:
        """Wait for one of the places for a handshake; give it back after the block."""
        if not self._handshakes.acquire(timeout=visit.left_s(visit.limit_s)):
            raise visit.verdict("a turn at the jump host")
        try:
            yield
        finally:
            self._handshakes.release()

    @property
    def is_alive(self) -> bool:
        """Whether the jump host still holds its connection."""
        return bool(self._connection.transport.is_active())

    def connect(self, address: str, port: int, limit_s: float) -> Forwarded:
        """A connection to a port behind the jump host. Raises as paramiko."""
        channel = self._connection.transport.open_channel(
            "direct-tcpip", (address, port), ("", 0), timeout=limit_s
        )
        return Forwarded(channel)


class Forwarded:
    """A forwarded connection, usable as a socket by the transport of the host behind.

    Where one thread sends on a plain channel while another closes it, data can follow the close
    on the wire, and sshd answers that by cutting the whole jump host off. Here it cannot.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._shut = False
        self._gathers = False
        self._shall_gather = False

    def gather(self) -> None:
        """See ``Buffered.gather``."""
        self._channel.settimeout(REST_S)
        self._shall_gather = True

    def send(self, data: bytes) -> int:
        """As ``socket.send``."""
        with self._lock:
            if self._shut:
                raise OSError(errno.EPIPE, "the forwarded connection is closed")
            return self._channel.send(data)

    def recv(self, size: int) -> bytes:
        """As ``socket.recv``."""
        if self._gathers and not self._channel.recv_ready():
            self._gathers = False
            self._channel.status_event.wait(GATHER_S)  # set when it is closed
        data = self._channel.recv(size)
        self._gathers = self._shall_gather
        return data

    def settimeout(self, seconds: float | None) -> None:
        """As ``socket.settimeout``."""
        self._channel.settimeout(seconds)

    def close(self) -> None:
        """Close it, once. The jump host may be gone already."""
        with self._lock:
            if not self._shut:
                self._shut = True
                with contextlib.suppress(OSError, EOFError):
                    self._channel.close()

    @property
    def _closed(self) -> bool:
        """What the library asks of a socket."""
        return self._shut

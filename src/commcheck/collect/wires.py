"""The byte stream under an SSH connection: a TCP socket, or a proxy command behind a socket."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import queue
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from commcheck.collect.failures import Stage

Step = Callable[[Stage, float], None]
"""Told what is waited for from now on, and its limit in seconds."""


class Buffered:
    """A socket for the SSH library, which reads each packet in two bites.

    Bites come from memory here: each system call lets go of the interpreter's lock, and with many
    connections getting it back costs more than the call.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._data = b""
        self._at = 0
        self._gathers = False  # right now: not before it shall, nor after a silence
        self._shall_gather = False

    def gather(self) -> None:
        """From now on what follows something may wait for more, ``GATHER_S`` at most."""
        with contextlib.suppress(OSError):  # a socket that cannot: each packet by itself, then
            self._wait_for(_READ_BYTES, GATHER_S)
            self._gathers = self._shall_gather = True

    def _wait_for(self, size: int, seconds: float) -> None:
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
        self._sock.settimeout(seconds)

    def recv(self, size: int) -> bytes:
        """As ``socket.recv``."""
        if self._at == len(self._data):
            self._data = self._arrived()
            self._at = 0
        bite = self._data[self._at : self._at + size]
        self._at += len(bite)
        if self._at == len(self._data):
            self._data, self._at = b"", 0
        return bite

    def _arrived(self) -> bytes:
        try:
            data = self._sock.recv(_READ_BYTES)
        except TimeoutError:
            if not self._gathers:
                raise
            data = self._gathered()
        if self._shall_gather and not self._gathers:
            self._wait_for(_READ_BYTES, GATHER_S)
            self._gathers = True
        return data

    def _gathered(self) -> bytes:
        """What came meanwhile; where that is nothing, the next bytes are waited for singly."""
        self._sock.settimeout(0.0)
        try:
            data = self._sock.recv(_READ_BYTES)
        except BlockingIOError:
            self._gathers = False
            self._wait_for(1, REST_S)
            raise TimeoutError from None
        self._sock.settimeout(GATHER_S)
        return data

    def send(self, data: bytes) -> int:
        """As ``socket.send``."""
        return self._sock.send(data)

    def settimeout(self, seconds: float | None) -> None:
        """As ``socket.settimeout``."""
        self._sock.settimeout(seconds)

    def close(self) -> None:
        """As ``socket.close``, and whoever waits in ``recv`` sees an end at once."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    @property
    def _closed(self) -> bool:
        """What the library asks of a socket."""
        return self._sock.fileno() < 0


GATHER_S: Final = 0.25
"""How long what a host says may wait for more of it.

sshd makes a packet of each write of the shell; to be woken for each, with cold caches, costs the
client more than to read it: a third of all that a host costs.
"""

REST_S: Final = 5.0
"""How long the library may wait for a host that is silent, before it looks to its keepalive."""

_READ_BYTES: Final = 32768
"""A packet of OpenSSH's is 32 KiB at most, and mostly far less."""


def tcp(address: str, port: int, limit_s: float, step: Step) -> socket.socket:
    """A connected socket, every address of the name tried in turn. Raises ``OSError``."""
    ends = time.monotonic() + limit_s
    step(Stage.RESOLVE, limit_s)
    places = _resolve(address, port, limit_s)
    step(Stage.TCP, limit_s)
    problem: OSError = TimeoutError()
    for count, (family, kind, protocol, _, place) in enumerate(places):
        left = ends - time.monotonic()
        if left <= 0:
            break
        sock = socket.socket(family, kind, protocol)
        try:
            # A dead first address must leave time for the second.
            sock.settimeout(left / (len(places) - count))
            sock.connect(place)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            sock.close()
            problem = error
        else:
            return sock
    raise problem


def _resolve(address: str, port: int, limit_s: float) -> list[Any]:
    """``getaddrinfo``, given up after ``limit_s``: it knows no time limit of its own."""
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(address.partition("%")[0])
        return socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    answers: queue.SimpleQueue[list[Any] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(list(socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)))
        except OSError as error:
            answers.put(error)
        except UnicodeError as error:
            answers.put(socket.gaierror(socket.EAI_NONAME, str(error)))

    threading.Thread(target=ask, name=f"resolve {address}", daemon=True).start()
    try:
        answer = answers.get(timeout=limit_s)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(answer, OSError):
        raise answer
    return answer


class ProxyCommand:
    """A command of the operator's whose stdin and stdout are the connection.

    One end of a socket pair: unlike with pipes, its end is seen as an end of file and its socket
    has time-outs.
    """

    def __init__(self, command: str) -> None:
        """Start it, as OpenSSH does: through a shell that it replaces. Raises ``OSError``."""
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as self
        self.sock, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the operator's own command
                ["/bin/sh", "-c", f"exec {command}"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._complaints,
                start_new_session=True,
            )
        except OSError:
            self.sock.close()
            raise
        finally:
            theirs.close()

    @property
    def complaint(self) -> str:
        """The last line it wrote to stderr, for a failure's reason."""
        if self._complaints.closed:
            return ""
        self._complaints.seek(0)
        lines = self._complaints.read(65536).decode(errors="replace").split("\n")
        return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        """End it and what it started."""
        self.sock.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.5)
                break
        self._complaints.close()

"""An SSH server in this process, on loopback: one simulated host, one listener.

It accepts one public key, runs what a client asks for with a real ``sh`` in a child process, and
ends that child when the client leaves. It needs no rights and listens on 127.0.0.1 only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping
from typing import Final

import paramiko

ADDRESS: Final = "127.0.0.1"
_CHUNK: Final = 65536
_GRACE_S: Final = 3.0
"""How long a child may take to clear up once its stdin is closed."""


class HostServer:
    """One host: ``port`` from the start, until ``close``."""

    def __init__(
        self, host_key: paramiko.PKey, accepts: paramiko.PKey, environ: Mapping[str, str]
    ) -> None:
        """``accepts``: the client key that may log in. ``environ``: all that a command gets."""
        self._host_key = host_key
        self._accepts = accepts
        self._environ = dict(environ)
        self._listener = socket.create_server((ADDRESS, 0))
        self.port: int = self._listener.getsockname()[1]
        self._transports: list[paramiko.Transport] = []
        self._children: list[subprocess.Popen[bytes]] = []
        threading.Thread(target=self._accept, name=f"demo {self.port}", daemon=True).start()

    def close(self) -> None:
        """Stop listening, hang up, end what still runs."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for transport in self._transports:
            transport.close()
        for child in self._children:
            _end(child)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            transport = paramiko.Transport(sock)
            self._transports.append(transport)
            transport.add_server_key(self._host_key)
            with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
                transport.start_server(threading.Event(), Rules(self._accepts, self._run))

    def _run(self, command: bytes, channel: paramiko.Channel) -> None:
        peer, here = channel.get_transport().sock.getpeername(), (ADDRESS, self.port)
        child = subprocess.Popen(  # noqa: S603 - as a login shell does: what the client sends
            ["/bin/sh", "-c", os.fsdecode(command)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**self._environ, "SSH_CONNECTION": f"{peer[0]} {peer[1]} {here[0]} {here[1]}"},
            cwd=self._environ["HOME"],
            start_new_session=True,
        )
        self._children.append(child)
        threading.Thread(target=_serve, args=(child, channel), daemon=True).start()


class Rules(paramiko.ServerInterface):
    """One key, any user name, commands only: each is handed to ``run``, which must not wait."""

    def __init__(
        self, accepts: paramiko.PKey, run: Callable[[bytes, paramiko.Channel], None]
    ) -> None:
        self._accepts = accepts
        self._run = run

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        if key.asbytes() == self._accepts.asbytes():
            return int(paramiko.common.AUTH_SUCCESSFUL)
        return int(paramiko.common.AUTH_FAILED)

    def check_channel_request(self, kind: str, chanid: int) -> int:
        if kind == "session":
            return int(paramiko.common.OPEN_SUCCEEDED)
        return int(paramiko.common.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED)

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self._run(command, channel)
        return True


# --- between a channel and a child --------------------------------------------------------------


def _serve(child: subprocess.Popen[bytes], channel: paramiko.Channel) -> None:
    """Carry bytes both ways until the child has ended; then hand over its exit code."""
    if child.stdin is None or child.stdout is None or child.stderr is None:
        return
    outputs = [
        threading.Thread(target=_pump, args=(child.stdout.fileno(), channel.sendall), daemon=True),
        threading.Thread(
            target=_pump, args=(child.stderr.fileno(), channel.sendall_stderr), daemon=True
        ),
    ]
    feeding = threading.Thread(target=_feed, args=(channel, child), daemon=True)
    for thread in (*outputs, feeding):
        thread.start()
    for thread in outputs:
        thread.join()
    code = _end(child)
    with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
        channel.send_exit_status(code if code >= 0 else 128 - code)
    with contextlib.suppress(OSError, EOFError):
        channel.close()
    feeding.join()
    for stream in (child.stdin, child.stdout, child.stderr):
        with contextlib.suppress(OSError):
            stream.close()


def _feed(channel: paramiko.Channel, child: subprocess.Popen[bytes]) -> None:
    """The client's bytes to the child. Their end is the end of its stdin: the client is gone."""
    assert child.stdin is not None  # noqa: S101 - for the type checker; _serve looked
    with contextlib.suppress(OSError, EOFError):
        while data := channel.recv(_CHUNK):
            child.stdin.write(data)
            child.stdin.flush()
    with contextlib.suppress(OSError):
        child.stdin.close()


def _pump(descriptor: int, send: Callable[[bytes], None]) -> None:
    """A child's output to the client; where that has left, to nobody, so that it can end."""
    gone = False
    while data := os.read(descriptor, _CHUNK):
        if not gone:
            try:
                send(data)
            except (OSError, EOFError):
                gone = True


def _end(child: subprocess.Popen[bytes]) -> int:
    """Wait until the child has cleared up after itself; kill it where it does not. Its code."""
    try:
        return child.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        return child.wait()

"""The process that carries the hosts of a ``CheapFleet``: ``python -m tests.cheap FOLDER HOSTS``.

Reads the script in one line from stdin, and ends when stdin does.
"""

from __future__ import annotations

import base64
import heapq
import itertools
import os
import re
import resource
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import IO, Final, NoReturn

import yaml
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.cheap import Answer, Script
from tests.cheap.ssh import KEY_TYPE, Connection, public_blob

FILES_A_HOST: Final = 4
"""Descriptors of a host: listener, connection, and some to spare."""

_LENGTH: Final = re.compile(rb"head -c (\d+)")
_NONCE: Final = re.compile(rb"^N=([0-9a-f]+)$", re.MULTILINE)
_TOLD: Final = re.compile(
    # A script among the words has lines of its own.
    rb"^c (?P<number>\d+) (?P<most>\d+) \d+ [01] (?P<words>.*?)$(?=\nc \d+ \d+ \d+ [01] |\n#|\Z)",
    re.MULTILINE | re.DOTALL,
)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class Runner:
    """One conversation, as the runner would hold it, after one script.

    ``after(seconds, runner)`` has ``go_on`` called when they have passed.
    """

    def __init__(
        self, connection: Connection, host: Host, after: Callable[[float, Runner], None]
    ) -> None:
        self._connection = connection
        self._host = host
        self._after = after
        self._stdin = bytearray()
        self._ended = False
        self._wants: int | float = 0.0  # so many bytes, or seconds of quiet
        self._nonce = b""
        self._out: list[bytes] = []
        self._err: list[bytes] = []

    # --- what an SSH server wants of a shell ----------------------------------------------------

    def start(self, command: bytes) -> None:
        """See ``Shell``."""
        length = _LENGTH.search(command)
        self._talk = self._conversation(int(length[1]) if length else 0)
        self.go_on()

    def feed(self, data: bytes) -> None:
        """See ``Shell``."""
        self._stdin += data
        if isinstance(self._wants, int):
            self.go_on()

    def end(self) -> None:
        """See ``Shell``."""
        self._ended = True

    def go_on(self) -> None:
        """As far as what was read and the clock allow."""
        while not self._ended and (
            isinstance(self._wants, float) or self._wants <= len(self._stdin)
        ):
            try:
                self._wants = next(self._talk)
            except StopIteration:
                self._ended = True
                return
            if isinstance(self._wants, float):
                self._after(self._wants, self)
                return

    # --- the conversation -----------------------------------------------------------------------

    def _conversation(self, length: int) -> Generator[int | float]:
        yield length
        nonce = _NONCE.search(self._stdin)
        if nonce is None:
            self._connection.hang_up()
            return
        self._nonce = nonce[1]
        del self._stdin[:length]
        yield from self._answer(b"0", self._host.found, None)
        self._say()
        while (end := self._stdin.find(b"\n")) < 0:
            yield len(self._stdin) + 1
        size = int(self._stdin[:end].split()[0])
        del self._stdin[: end + 1]
        yield size
        for asked in _TOLD.finditer(bytes(self._stdin[:size])):
            answer = self._host.answers.get(asked["words"], _NOT_FOUND)
            yield from self._answer(asked["number"], answer, int(asked["most"]))
        self._both(b"\n%b bye\n" % self._nonce)
        self._say()

    def _answer(self, number: bytes, answer: Told, most: int | None) -> Generator[int | float]:
        """The frame of one command; ``most`` bytes of its output. What takes no time waits."""
        self._both(b"\n%b begin %b %.2f\n" % (self._nonce, number, time.monotonic()))
        if answer.seconds:
            self._say()
            yield answer.seconds
        self._out.append(answer.stdout[:most])
        self._err.append(answer.stderr[:most])
        end = (self._nonce, number, answer.rc, time.monotonic())
        self._both(b"\n%b end %b %d %.2f plain\n" % end)

    def _both(self, line: bytes) -> None:
        self._out.append(line)
        self._err.append(line)

    def _say(self) -> None:
        self._connection.say(b"".join(self._out), b"".join(self._err))
        self._out.clear()
        self._err.clear()


class Told:
    """An answer in bytes, as all hosts say it."""

    def __init__(self, answer: Answer) -> None:
        self.stdout, self.stderr = _bytes(answer.stdout), _bytes(answer.stderr)
        self.rc, self.seconds = answer.rc, float(answer.seconds)


_NOT_FOUND: Final = Told(Answer("", 127))


class Host:
    """What every host says."""

    def __init__(self, script: Script) -> None:
        self.found = Told(Answer(script.found))
        self.answers = {_bytes(words): Told(each) for words, each in script.answers.items()}


class Loop:
    """All hosts' listeners and connections, and who rests until when."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._ready = selectors.DefaultSelector()
        self._events: dict[Connection, int] = {}  # what each one is watched for
        self._resting: list[tuple[float, int, Connection, Runner]] = []
        self._numbers = itertools.count()
        self._host_key = ec.generate_private_key(ec.SECP256R1())
        self.client_key = ec.generate_private_key(ec.SECP256R1())

    @property
    def host_key(self) -> str:
        """The key of all hosts, as ``known_hosts`` has it."""
        blob = base64.b64encode(public_blob(self._host_key.public_key()))
        return f"{KEY_TYPE.decode()} {blob.decode()}"

    def listen(self, address: str) -> int:
        """One more host. Its port."""
        listener = socket.create_server((address, 0), backlog=16)
        self._ready.register(listener, selectors.EVENT_READ)
        port: int = listener.getsockname()[1]
        return port

    def run(self) -> NoReturn:
        """Serve, for ever."""
        while True:
            for key, events in self._ready.select(self._pause_s()):
                if isinstance(key.data, Connection):
                    reads = events & selectors.EVENT_READ
                    self._watch(key.data, key.data.readable() if reads else key.data.writable())
                elif isinstance(key.fileobj, socket.socket):
                    self._accept(key.fileobj)
            while self._resting and self._resting[0][0] <= time.monotonic():
                *_, connection, runner = heapq.heappop(self._resting)
                if connection in self._events:
                    runner.go_on()
                    self._watch(connection, connection.writable())

    def _pause_s(self) -> float | None:
        if not self._resting:
            return None
        return max(0.0, self._resting[0][0] - time.monotonic())

    def _accept(self, listener: socket.socket) -> None:
        sock, _ = listener.accept()
        connection = Connection(sock, self._host_key, self.client_key.public_key(), self._shell)
        self._events[connection] = selectors.EVENT_READ
        self._ready.register(sock, selectors.EVENT_READ, connection)
        self._watch(connection, connection.writable())

    def _shell(self, connection: Connection) -> Runner:
        def after(seconds: float, runner: Runner) -> None:
            until = time.monotonic() + seconds
            heapq.heappush(self._resting, (until, next(self._numbers), connection, runner))

        return Runner(connection, self._host, after)

    def _watch(self, connection: Connection, goes_on: bool) -> None:
        """Wait for what ``connection`` waits for; let go of one that does not go on."""
        if not goes_on:
            del self._events[connection]
            self._ready.unregister(connection.sock)
            connection.close()
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.waits else 0)
        if events != self._events[connection]:
            self._events[connection] = events
            self._ready.modify(connection.sock, events, connection)


def serve(folder: Path, count: int, told: IO[str]) -> NoReturn:
    """Serve until ``told`` ends, which holds the script in its first line."""
    script = Script.read(told.readline())
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(1024, FILES_A_HOST * count)
    resource.setrlimit(
        resource.RLIMIT_NOFILE,
        (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most),
    )
    loop = Loop(Host(script))
    hosts, known = {}, []
    for number in range(1, count + 1):
        address = f"127.20.{number // 250}.{number % 250 + 1}"
        port = loop.listen(address)
        known.append(f"[{address}]:{port} {loop.host_key}\n")
        hosts[f"node-{number:04d}"] = {"ansible_host": address, "ansible_port": port}
    (folder / "known_hosts").write_text("".join(known))
    group = {"hosts": hosts, "vars": script.variables}
    (folder / "inventory.yaml").write_text(
        yaml.dump({"all": {"children": {"gpu": group}}}, sort_keys=False, Dumper=yaml.CSafeDumper)
    )
    (folder / "ssh_config").touch()
    key = loop.client_key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    (folder / "client_key").touch(0o600)
    (folder / "client_key").write_bytes(key)
    threading.Thread(target=_until_end, args=(told,), daemon=True).start()
    print("ready", flush=True)
    loop.run()


def _until_end(told: IO[str]) -> None:
    """The parent is gone, however it ended: nothing of ours may stay."""
    told.read()
    os._exit(0)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]), sys.stdin)

"""A fleet that speaks the runner's protocol and runs nothing: a thousand hosts in one process.

For measuring the client: real SSH, real frames, and answers that were taken from one simulated
host beforehand. The servers are a process of their own, so that their time is not the client's.
Each host has its own address in 127.0.0.0/8, which Linux answers on without being told to.

What is here is no shell: a request gets the answer under its words, or "not found" (127).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import selectors
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import IO, Final, Self

import paramiko
import yaml

from commcheck.collect.base import Frame, Frames, Request
from commcheck.collect.ssh import SshSettings
from commcheck.demo.command import command_words, gpu_queries
from commcheck.demo.fleet import INVENTORY, USER, DemoVisitor, Fleet
from commcheck.demo.server import Rules
from commcheck.demo.state import LINE_RATE_GBITS, healthy
from commcheck.discover import FoundCheck
from commcheck.inventory.load import load
from commcheck.lazy import dataclass, regex
from commcheck.model import Machine
from commcheck.plan import Asked, requests
from commcheck.report.cleaning import decode
from commcheck.subjects import machine

FILES_A_HOST: Final = 4
"""Descriptors of a host: listener, connection, and some to spare."""

_LENGTH: Final = regex(rb"head -c (\d+)")
_NONCE: Final = regex(r"^N=([0-9a-f]+)$", re.MULTILINE)
_TOLD: Final = regex(
    # A script among the words has lines of its own.
    r"^c (?P<number>\d+) (?P<most>\d+) \d+ [01] (?P<words>.*?)$(?=\nc \d+ \d+ \d+ [01] |\n#|\Z)",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command says, and the seconds that it takes to say it."""

    stdout: str
    rc: int = 0
    seconds: float = 0.0
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """What every host of the fleet says: what the runner finds, and answers by command words."""

    found: str
    answers: Mapping[str, Answer] = field(default_factory=dict)
    variables: Mapping[str, object] = field(default_factory=dict)  # of each host in the inventory

    def with_answers(self, more: Mapping[str, Answer]) -> Script:
        """The same host, which also knows these commands."""
        return Script(self.found, {**self.answers, **more}, self.variables)


def healthy_script(checks: Sequence[FoundCheck]) -> Script:
    """The answers of one healthy simulated host to all that ``checks`` ask. Takes a second."""
    frames = Frames()
    with Fleet([healthy(1)], gpu_queries(command_words(()))) as fleet:
        (host,) = load((INVENTORY,), cwd=fleet.folder).hosts
        asked = [Asked(each.check) for each in checks]

        words: dict[str, str] = {}

        def ask(frame: Frame) -> tuple[Request, ...]:
            found: Machine = machine(host, decode(frame.stdout))
            wanted = requests(host, found, asked)
            words.update({each.key: shlex.join(each.command.argv) for each in wanted})
            return wanted

        DemoVisitor(fleet, SshSettings(run_id="script")).visit(host, ask, frames)
        nics = host.variables["commcheck_nics"]
    answers = {
        words[frame.key]: Answer(decode(frame.stdout), frame.rc or 0, stderr=decode(frame.stderr))
        for frame in frames[1:]
    }
    variables = {"commcheck_nics": nics, "commcheck_line_rate_gbits": LINE_RATE_GBITS}
    return Script(decode(frames[0].stdout), answers, variables)


class CheapFleet:
    """``hosts`` simulated hosts ``node-0001``, ... that all answer by one script.

    ``inventory``, ``known_hosts`` and ``key`` are files to reach them with, as ``demo``; they and
    the servers are gone after the block. ``server`` is the process that carries them.
    """

    def __init__(self, hosts: int, script: Script) -> None:
        self._hosts = hosts
        self._script = script
        self.folder = Path()

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="commcheck-cheap-"))
        argv = [sys.executable, "-m", "commcheck.demo.cheap", str(self.folder), str(self._hosts)]
        self.server = subprocess.Popen(  # noqa: S603 - ourselves
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.server.stdin is not None and self.server.stdout is not None  # noqa: S101, PT018 - pipes
        self.server.stdin.write(json.dumps(asdict(self._script)) + "\n")
        self.server.stdin.flush()
        if not self.server.stdout.readline():
            self.__exit__()
            raise OSError("the servers of the simulated hosts did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self.server.kill()
        self.server.wait()
        for pipe in (self.server.stdin, self.server.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def inventory(self) -> Path:
        """The inventory of all hosts, in YAML."""
        return self.folder / "inventory.yaml"

    @property
    def known_hosts(self) -> Path:
        """The host keys."""
        return self.folder / "known_hosts"

    @property
    def key(self) -> Path:
        """The private key that may log in."""
        return self.folder / "client_key"

    @property
    def arguments(self) -> tuple[str, ...]:
        """What ``commcheck run`` is told to reach this fleet and nothing else."""
        ssh_config = str(self.folder / "ssh_config")
        return ("-i", str(self.inventory), "--known-hosts", str(self.known_hosts),
                "--ssh-config", ssh_config, "--key-file", str(self.key), "-u", USER)  # fmt: skip


# --- the servers' own process -------------------------------------------------------------------


def serve(folder: Path, count: int, told: IO[str]) -> None:
    """Serve until ``told`` ends, which holds the script in its first line."""
    script = json.loads(told.readline())
    answers = {words: Answer(**each) for words, each in script["answers"].items()}
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(1024, FILES_A_HOST * count)
    resource.setrlimit(
        resource.RLIMIT_NOFILE,
        (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most),
    )
    client_key, host_key = paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate()
    _write_key(folder / "client_key", client_key)
    (folder / "ssh_config").touch()
    listeners = selectors.DefaultSelector()
    hosts, known = {}, []
    for number in range(1, count + 1):
        address = f"127.20.{number // 250}.{number % 250 + 1}"
        listener = socket.create_server((address, 0), backlog=16)
        port = listener.getsockname()[1]
        listeners.register(listener, selectors.EVENT_READ)
        known.append(f"[{address}]:{port} {host_key.get_name()} {host_key.get_base64()}\n")
        hosts[f"node-{number:04d}"] = {"ansible_host": address, "ansible_port": port}
    (folder / "known_hosts").write_text("".join(known))
    group = {"hosts": hosts, "vars": script["variables"]}
    (folder / "inventory.yaml").write_text(
        yaml.dump({"all": {"children": {"gpu": group}}}, sort_keys=False, Dumper=yaml.CSafeDumper)
    )
    threading.Thread(target=_until_end, args=(told,), daemon=True).start()
    print("ready", flush=True)  # noqa: T201 - the parent waits for this line
    while True:
        for ready, _ in listeners.select():
            if isinstance(ready.fileobj, socket.socket):
                sock, _ = ready.fileobj.accept()
                _log_in(sock, host_key, client_key, script["found"], answers)


def _until_end(told: IO[str]) -> None:
    """The parent is gone, however it ended: nothing of ours may stay."""
    told.read()
    os._exit(0)


def _write_key(path: Path, key: paramiko.PKey) -> None:
    path.touch(0o600)
    key.write_private_key_file(str(path))


def _log_in(
    sock: socket.socket,
    host_key: paramiko.PKey,
    client_key: paramiko.PKey,
    found: str,
    answers: Mapping[str, Answer],
) -> None:
    transport = paramiko.Transport(sock)
    transport.add_server_key(host_key)

    def run(command: bytes, channel: paramiko.Channel) -> None:
        threading.Thread(target=_hold, args=(command, channel, found, answers), daemon=True).start()

    with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
        transport.start_server(threading.Event(), Rules(client_key, run))


def _hold(
    command: bytes, channel: paramiko.Channel, found: str, answers: Mapping[str, Answer]
) -> None:
    """One conversation, as the runner would hold it."""
    stdin = channel.makefile("rb")
    length = _LENGTH.search(command)
    with contextlib.suppress(OSError, EOFError):
        first = stdin.read(int(length[1])).decode() if length else ""
        nonce = _NONCE.search(first)
        if nonce is None:
            channel.close()
            return
        said = _Said(channel, nonce[1])
        said.answer(0, Answer(found), None)
        said.now()
        told = stdin.readline().split()
        size = int(told[0]) if told else 0  # none: the client left before it asked
        for asked in _TOLD.finditer(stdin.read(size).decode("utf-8", "surrogateescape")):
            answer = answers.get(asked["words"], Answer("", 127))
            said.answer(int(asked["number"]), answer, int(asked["most"]))
        said.bye()
        stdin.read()  # the client hangs up


class _Said:
    """What a host says on both streams: at once what takes it no time, as a quick host would."""

    def __init__(self, channel: paramiko.Channel, nonce: str) -> None:
        self._channel = channel
        self._nonce = nonce
        self._out: list[bytes] = []
        self._err: list[bytes] = []

    def answer(self, number: int, answer: Answer, most: int | None) -> None:
        """The frame of one command; ``most`` bytes of its output."""
        self._both(f"\n{self._nonce} begin {number} {time.monotonic():.2f}\n")
        if answer.seconds:
            self.now()
            time.sleep(answer.seconds)
        self._out.append(answer.stdout.encode("utf-8", "surrogateescape")[:most])
        self._err.append(answer.stderr.encode("utf-8", "surrogateescape")[:most])
        self._both(f"\n{self._nonce} end {number} {answer.rc} {time.monotonic():.2f} plain\n")

    def bye(self) -> None:
        """The last word."""
        self._both(f"\n{self._nonce} bye\n")
        self.now()

    def now(self) -> None:
        """Send what was said until now."""
        self._channel.sendall(b"".join(self._out))
        self._channel.sendall_stderr(b"".join(self._err))
        self._out.clear()
        self._err.clear()

    def _both(self, text: str) -> None:
        self._out.append(text.encode())
        self._err.append(text.encode())


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]), sys.stdin)

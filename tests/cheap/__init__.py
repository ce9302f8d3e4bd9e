"""A fleet that speaks the runner's protocol and runs nothing: a thousand hosts in one process.

For measuring the client: real SSH, real frames, and answers that were taken from one simulated
host beforehand. The servers are a process of their own, so that their time is not the client's.
Each host has its own address in 127.0.0.0/8, which Linux answers on without being told to.

What is here is no shell: a request gets the answer under its words, or "not found" (127).
"""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, Self

from commcheck.collect.base import Frame, Frames, Request
from commcheck.collect.ssh import SshSettings
from commcheck.demo.command import command_words, gpu_queries
from commcheck.demo.fleet import INVENTORY, USER, DemoVisitor, Fleet
from commcheck.demo.state import LINE_RATE_GBITS, healthy
from commcheck.discover import FoundCheck, discover
from commcheck.inventory.load import load
from commcheck.model import Machine
from commcheck.plan import Asked, requests
from commcheck.report.cleaning import decode
from commcheck.subjects import machine

ROOT = Path(__file__).parents[2]


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

    @staticmethod
    def read(line: str) -> Script:
        """A script out of its JSON."""
        told = json.loads(line)
        answers = {words: Answer(**each) for words, each in told["answers"].items()}
        return Script(told["found"], answers, told["variables"])


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


CHECKS: Final = ("physical.gpu-driver", "physical.nic-mtu")
"""Enough for whoever asks of the way to hosts and not of what they are."""


def script_of_two(cwd: Path) -> Script:
    """What a healthy host says to ``CHECKS``. ``cwd``: a folder without checks of its own."""
    found = discover((), cwd=cwd)
    return healthy_script([each for each in found if each.id in CHECKS])


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
        argv = [sys.executable, "-m", "tests.cheap", str(self.folder), str(self._hosts)]
        self.server = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert self.server.stdin is not None
        assert self.server.stdout is not None
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

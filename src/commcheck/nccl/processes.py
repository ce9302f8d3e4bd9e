"""Processes that use the host's accelerators, and those of their variables that may be seen.

Found by the device files that they hold open: ``/dev/nvidia-uvm`` of every CUDA process (monitoring
and persistence daemons do without), ``/dev/davinciN`` of every Ascend process. Of their environment
grep lets only the names leave the host that are looked at; NUL ends each, so that a secret whose
value holds such a name in a later line stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field
from typing import Final

from commcheck.check import Reader, first_of
from commcheck.command import Command, Output, clean
from commcheck.errors import CommandFailed
from commcheck.lazy import dataclass, regex
from commcheck.nccl.environment.model import Layer, Setting
from commcheck.nccl.environment.names import PREFIXES, WHOLE, is_kept
from commcheck.nccl.environment.sources import conf_file

TOOL: Final = "processes"


@dataclass(frozen=True, slots=True)
class Process:
    """A process: its pid, and its variables as it was started with them."""

    pid: int
    variables: tuple[tuple[str, str], ...] = ()

    def get(self, name: str) -> str | None:
        """A variable's value."""
        return dict(self.variables).get(name)

    @property
    def rank(self) -> int | None:
        """Its global rank, as torchrun and most launchers say it."""
        told = self.get("RANK")
        return int(told) if told is not None and re.fullmatch(r"\d{1,7}", told) else None

    @property
    def job(self) -> str:
        """The job that it is a rank of: its meeting point; "" where nothing tells it."""
        place, port = self.get("MASTER_ADDR"), self.get("MASTER_PORT")
        return f"{place or '?'}:{port or '?'}" if place or port else ""


@dataclass(frozen=True, slots=True)
class Users:
    """The processes that use accelerators. ``hidden``: others could not be looked at."""

    processes: tuple[Process, ...]
    hidden: bool = False
    stopped: frozenset[int] = field(default_factory=frozenset)


_HELD: Final = regex(r"/proc/(\d{1,10})/fd/\d+")
_RECORD: Final = regex(r"/proc/(\d{1,10})/environ:([^=]+)=(.*)", re.DOTALL)
_STATUS: Final = regex(r"/proc/(\d{1,10})/status")


def parse(held: Output, environ: Output, stopped: Output) -> Users:
    """Who holds a device, with their variables. Raises ``CommandFailed`` without GNU find."""
    for output in (held, environ, stopped):
        if output.rc not in (0, 1):
            raise CommandFailed(f"find failed with exit code {output.rc}: {output.complaint}")
    pids = {int(match[1]) for line in held.text.split("\n") if (match := _HELD.fullmatch(line))}
    variables: dict[int, dict[str, str]] = {pid: {} for pid in pids}
    for record in environ.stdout.split("\0"):
        match = _RECORD.fullmatch(record)
        if match and int(match[1]) in pids and is_kept(match[2]):
            variables[int(match[1])][match[2]] = match[3]
    found = tuple(Process(pid, tuple(sorted(variables[pid].items()))) for pid in sorted(variables))
    halted = {int(m[1]) for line in stopped.text.split("\n") if (m := _STATUS.fullmatch(line))}
    hidden = "Permission denied" in clean(held.stderr)
    return Users(found, hidden, frozenset(halted & pids))


def _commands(*, root: bool) -> tuple[Command, Command, Command]:
    depth = ("find", "/proc/", "-mindepth", "2", "-maxdepth")
    devices = ("*/dev/nvidia-uvm", "*/dev/davinci[0-9]*")
    holds = [word for device in devices for word in ("-lname", device, "-print", "-o")][:-1]
    names = [f"^{name}" for name in PREFIXES] + [f"^{name}=" for name in WHOLE]
    wanted = [word for name in names for word in ("-e", name)]
    return (
        Command(
            (
                *depth,
                "3",
                "-not",
                "-path",
                "*/fd",
                "-not",
                "-path",
                "*/fd/*",
                "-prune",
                "-o",
                *holds,
            ),
            timeout_s=20,
            root=root,
        ),
        Command(
            (*depth, "2", "-name", "environ", "-exec", "grep", "-sazH", *wanted, "{}", "+"),
            timeout_s=20,
            root=root,
            cap_bytes=4 << 20,
        ),
        Command(
            (*depth, "2", "-name", "status", "-exec", "grep", "-sl", "^State:.T", "{}", "+"),
            timeout_s=20,
            root=root,
        ),
    )


def _reader(*, root: bool) -> Reader[Users]:
    return Reader(tool=TOOL, commands=_commands(root=root), parse=parse, varies=True)


USERS: Final = first_of(_reader(root=True), _reader(root=False))
"""Without root only the own processes are seen, and ``hidden`` says so."""

HIDDEN: Final = "processes of other users could not be looked at"
SEE_ALL: Final = "allow sudo -n, or log in as the user whose job it is"


# --- configuration files ------------------------------------------------------------------------

ETC: Final = "/etc/nccl.conf"


def parse_conf(path: str) -> Reader[Layer]:
    """The reader of a configuration file; a missing one sets nothing."""

    def read(output: Output) -> Layer:
        if output.rc != 0:
            if "No such file or directory" in clean(output.stderr):
                return Layer({})
            raise CommandFailed(f"{path} cannot be read: {output.complaint}")
        return conf_file(output.stdout, path)

    return Reader(tool="nccl-conf", commands=(Command(("cat", path)),), parse=read)


ETC_CONF: Final = parse_conf(ETC)


def layer_of(process: Process) -> Layer:
    """The variables of a process as the strongest layer."""
    where = f"pid {process.pid}"
    return Layer({name: Setting(value, where) for name, value in process.variables})


def ranks(users: Users) -> tuple[Process, ...]:
    """The ranks of jobs: one process for each set of variables, without their data loaders.

    Workers that a rank forks inherit its devices and its variables: the first one stands for all.
    """
    found: dict[tuple[tuple[str, str], ...], Process] = {}
    for process in users.processes:
        found.setdefault(process.variables, process)
    return tuple(found.values())


def jobs(processes: Iterable[Process]) -> dict[str, tuple[Process, ...]]:
    """Ranks by the job that they belong to."""
    found: dict[str, list[Process]] = {}
    for process in processes:
        if process.rank is not None:
            found.setdefault(process.job or "?:?", []).append(process)
    return {name: tuple(members) for name, members in found.items()}

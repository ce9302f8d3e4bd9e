"""Command lines of the processes that use a host's accelerators: the flags that are known.

Of every argument grep lets pass the name of a flag, the values of known flags, plain numbers, and
the names of scripts and settings files; whatever else stands there, secrets among it, stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from commcheck.check import Reader, first_of
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed
from commcheck.frameworks.command import ENVIRON, KNOWN, Word, read_flags, settings_of
from commcheck.frameworks.settings import Setting, Settings
from commcheck.lazy import dataclass, regex
from commcheck.nccl.processes import Process, Users

TOOL: Final = "command-lines"


@dataclass(frozen=True, slots=True)
class CommandLines:
    """Words by pid, as far as they may be seen, in their order."""

    words: Mapping[int, tuple[str, ...]]


_RECORD: Final = regex(r"/proc/(\d{1,10})/cmdline:(.*)", re.DOTALL)


def parse(output: Output) -> CommandLines:
    """The words of each process. Raises ``CommandFailed`` where find could not be run."""
    if output.rc not in (0, 1):
        raise CommandFailed(f"find failed with exit code {output.rc}: {output.complaint}")
    words: dict[int, list[str]] = {}
    for record in output.stdout.split("\0"):
        match = _RECORD.fullmatch(record)
        if match:
            words.setdefault(int(match[1]), []).append(match[2])
    return CommandLines({pid: tuple(found) for pid, found in words.items()})


def _flag_pattern(name: str) -> str:
    """The flag with its value in one argument; words are written with - or _."""
    return f"^--(no[-_])?{name.replace('_', '[-_]')}=[A-Za-z0-9_.,:/+-]*"


_PATTERNS: Final = (
    *(_flag_pattern(name) for name in KNOWN),
    "^--[A-Za-z0-9_-]+",
    "^[0-9][0-9.eE+:]{0,15}",
    *(f"^{word}" for word in ("true", "false", "True", "False")),
    *(f"^{word}" for word in ("full_shard", "shard_grad_op", "hybrid_shard", "no_shard")),
    *(f"^{word}" for word in ("backward_pre", "backward_post", "no_prefetch", "BACKWARD_PRE")),
    *(f"^{word}" for word in ("BACKWARD_POST", "NO_PREFETCH")),
    "^[A-Za-z0-9_./-]*[.]py",
    "^[A-Za-z0-9_./-]*[.]json",
)
"""What grep prints of an argument: the longest of these that it begins with."""


def _reader(*, root: bool) -> Reader[CommandLines]:
    wanted = [word for pattern in _PATTERNS for word in ("-e", pattern)]
    find = ("find", "/proc/", "-mindepth", "2", "-maxdepth", "2", "-name", "cmdline", "-exec")
    command = Command(
        (*find, "grep", "-sazHoE", *wanted, "{}", "+"), timeout_s=20, root=root, cap_bytes=4 << 20
    )
    return Reader(tool=TOOL, commands=(command,), parse=parse, varies=True)


COMMAND_LINES: Final = first_of(_reader(root=True), _reader(root=False))
"""Anybody may read them, but for hosts that hide processes (hidepid)."""


def settings(users: Users, lines: CommandLines) -> tuple[Settings, ...]:
    """What the jobs on a host set: each set of flags once, however many ranks have it."""
    groups: dict[tuple[tuple[str, ...], tuple[tuple[str, str], ...]], list[Process]] = {}
    for process in users.processes:
        words = lines.words.get(process.pid)
        if words:
            told = tuple(pair for pair in process.variables if pair[0] in ENVIRON)
            groups.setdefault((words, told), []).append(process)
    found: list[Settings] = []
    for (words, told), processes in groups.items():
        where = _who(processes)
        # Without root the environment of others is not known, which is not the same as empty.
        known = any(each.variables for each in processes)
        environ = {name: Setting(value, where) for name, value in told} if known else None
        flags = read_flags([Word(word, where) for word in words])
        found += settings_of(flags, where, environ, runs=True)
    return tuple(found)


def _who(processes: list[Process]) -> str:
    first = f"pid {processes[0].pid}"
    return first if len(processes) == 1 else f"{first} and {len(processes) - 1} like it"

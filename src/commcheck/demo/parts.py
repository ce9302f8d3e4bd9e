"""What a simulated host is rendered into, and who renders it: one file for a tool, or for a part
of /sys and /proc, found by looking into the packages ``tools`` and ``sysfs``.

A module of ``tools`` has ``TOOLS``, the names of the programs that it stands for (several modules
may stand for one), and ``answers(host, queries)``. A module of ``sysfs`` has ``entries(host)``.
All are pure and share nothing with the readers that parse what they print.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from functools import cache
from types import ModuleType

from commcheck.demo import sysfs, tools
from commcheck.demo.state import HostState
from commcheck.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answers to one command line."""

    argv: tuple[str, ...]
    stdout: str
    stderr: str = ""
    rc: int = 0


@dataclass(frozen=True, slots=True)
class File:
    """A file below /sys or /proc: its path from the root (``sys/class/...``) and its text."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link, and what it leads to: both as paths from the root."""

    path: str
    target: str


Entries = Iterator[File | Link]


@cache
def _modules(package: ModuleType) -> tuple[ModuleType, ...]:
    names = sorted(each.name for each in pkgutil.iter_modules(package.__path__))
    return tuple(importlib.import_module(f"{package.__name__}.{name}") for name in names)


def tool_names() -> tuple[str, ...]:
    """Every program that a simulated host has."""
    return tuple(sorted({name for module in _modules(tools) for name in module.TOOLS}))


def answers(host: HostState, queries: Iterable[str] = ()) -> Iterator[Answer]:
    """Every command line that the host's tools know. ``queries``: of ``nvidia-smi --query-gpu``."""
    asked = tuple(queries)
    for module in _modules(tools):
        yield from module.answers(host, asked)


def entries(host: HostState) -> Entries:
    """Everything that is in /sys and /proc of the host, as far as commcheck looks."""
    for module in _modules(sysfs):
        yield from module.entries(host)

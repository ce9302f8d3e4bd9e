"""``df -Pk /dev/shm``: the memory that processes share by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState

TOOLS: Final = ("df",)

_SHM: Final = "/dev/shm"  # noqa: S108 - a name in an answer


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """In the form of POSIX."""
    total, free = host.upkeep.shm_total_kib, host.upkeep.shm_free_kib
    used = total - free
    head = "Filesystem     1024-blocks  Used  Available Capacity Mounted on\n"
    row = f"tmpfs           {total} {used} {free} {round(100 * used / total):>8}% {_SHM}\n"
    yield Answer(("df", "-Pk", _SHM), head + row)

"""Files that somebody names are opened here: no name makes commcheck wait, or fills the memory."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import BinaryIO, Final, Protocol, TextIO

from commcheck.lazy import regex

_FROM_A_SHELL: Final = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""What ``<(command)`` hands over: a pipe whose writer is there, so it ends."""

_KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


_RANK: Final = regex(r"(?<!local)(?<!local[-_])rank[-_]?(\d{1,7})", re.I)


def rank_named(path: str) -> int | None:
    """The rank that a file's name tells, or its folder's: ``nccl_trace_rank_3``, ``rank3/``."""
    whole = PurePath(path)
    found = _RANK.search(whole.name) or _RANK.fullmatch(whole.parent.name)
    return int(found[1]) if found else None


class Readable(Protocol):
    """Bytes that come in pieces."""

    def read(self, size: int, /) -> bytes:
        """At most so many of them, none at the end."""


def opened(path: str | Path) -> BinaryIO:
    """A file's bytes, from their beginning. Raises ``OSError`` for what is no file.

    A named pipe would keep us waiting for its writer, and a device need not end. /dev/null is an
    empty file, and the pipes of a shell are read.
    """
    found = os.stat(path)  # noqa: PTH116 - a text stays as it was written: /dev/fd/63
    if not str(path).startswith(_FROM_A_SHELL) and not _is_null(found):
        for is_one, what in _KINDS:
            if is_one(found.st_mode):
                raise OSError(errno.EINVAL, f"{what}, wanted a file")
    # Nobody waits for what took the file's place since.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    os.set_blocking(descriptor, True)
    try:
        return os.fdopen(descriptor, "rb")
    except OSError:  # a folder
        os.close(descriptor)
        raise


def _is_null(found: os.stat_result) -> bool:
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == os.stat(os.devnull).st_rdev  # noqa: PTH116


def read_whole(path: str | Path, most: int) -> bytes:
    """All of a file of at most so many bytes. Raises ``OSError``, also where it is longer."""
    with opened(path) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise _too_long(most)
        return read_rest(file, most)


def read_rest(stream: Readable, most: int) -> bytes:
    """What is left of a stream, at most so many bytes. Raises ``OSError``."""
    data = stream.read(most + 1)
    if len(data) > most:
        raise _too_long(most)
    return data


def _too_long(most: int) -> OSError:
    return OSError(errno.EFBIG, f"larger than {most >> 20} MiB")


def lines_of(text: TextIO, most: int) -> Iterator[str]:
    """The lines of a text, each with its end. Raises ``OSError`` where one has more characters."""
    while line := text.readline(most + 1):
        if len(line) > most:
            raise OSError(errno.EFBIG, f"a line of more than {most >> 20} Mi characters")
        yield line

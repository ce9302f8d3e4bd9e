"""A second process for large inputs: it reads, decompresses and picks lines; this one reads them.

Lines stay in order, so the facts are the same as with one process.
"""

from __future__ import annotations

import lzma
import multiprocessing
import zlib
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import Connection
from typing import Final

from commcheck.nccl.scan import Lines, Scanner
from commcheck.processes import hear, unhearing

BATCH_BYTES: Final = 1 << 20

Call = tuple[str, tuple[object, ...], dict[str, object]]
Chunks = Callable[[str], Iterable[bytes]]
Scanned = tuple[int, bool, str]
"""The number of lines, whether the last one had no end, and what went wrong or ""."""


class _Sender:
    """A ``Lines`` that hands every call over to the other process."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._calls: list[Call] = []
        self._bytes = 0

    def clean(self, text: str, numbers: Sequence[int], *, careful: bool) -> None:
        self._add("clean", text, numbers, careful=careful)

    def hit(self, line: bytes, number: int, *, whole: bool) -> None:
        self._add("hit", line, number, whole=whole)

    def other(self, line: bytes, number: int) -> None:
        self._add("other", line, number)

    def _add(self, name: str, text: str | bytes, number: object, **options: object) -> None:
        self._calls.append((name, (text, number), options))
        self._bytes += len(text) + 100
        if self._bytes >= BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Sends what has gathered."""
        if self._calls:
            self._pipe.send(self._calls)
        self._calls, self._bytes = [], 0


def _work(pipe: Connection, name: str, chunks: Chunks) -> None:
    """In the child: the end is told by (lines, cut, error)."""
    hear()
    sender = _Sender(pipe)
    scanned = scan(chunks(name), sender)
    sender.flush()
    pipe.send(scanned)
    pipe.close()


def scan(chunks: Iterable[bytes], lines: Lines) -> Scanned:
    """Scans a file here. Of one that is damaged or cut, what comes before is read all the same."""
    scanner = Scanner(lines)
    error = ""
    try:
        for chunk in chunks:
            scanner.feed(chunk)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as problem:
        error = str(problem) or type(problem).__name__
    cut = scanner.close() or bool(error)
    return scanner.number, cut, error


def scan_apart(name: str, chunks: Chunks, lines: Lines) -> Scanned:
    """Scans a file in a child process, and hands its lines over here."""
    # Not fork: the caller may have threads.
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(there, name, chunks), daemon=True)
    with unhearing():
        child.start()
    there.close()
    try:
        while True:
            got = here.recv()
            if isinstance(got, tuple):
                lines_read, cut, error = got
                return int(lines_read), bool(cut), str(error)
            for method, args, options in got:
                getattr(lines, method)(*args, **options)
    except (EOFError, OSError):
        return 0, True, "the reading process died"
    finally:
        here.close()
        child.join(5)
        if child.is_alive():
            child.kill()

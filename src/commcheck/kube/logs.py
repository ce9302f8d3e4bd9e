"""The part of a container's log that matters, picked out as it streams by.

As on a host only lines with a mark of NCCL, HCCL or PyTorch's watchdog are kept, the first and
the last of them. What is read is bounded by ``--limit-bytes``; of a log that is longer, the end
is read as well, by ``--tail``.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Final

from commcheck.kube.call import GoOn, stream
from commcheck.kube.place import Place
from commcheck.lazy import dataclass
from commcheck.nccl.host_log import CUT, HALF_BYTES, MARKS

LIMIT_BYTES: Final = 256 << 20
"""Of a log, from its beginning; containerd keeps 10 MiB a file unless told otherwise."""

TAIL_LINES: Final = 100_000

_LINE_BYTES: Final = 64 << 10
"""Of one line; what is longer is no line of a library."""


@dataclass(slots=True)
class Picked:
    """Lines that matter, in order: those of the beginning, and those of the end."""

    first: bytearray = field(default_factory=bytearray)
    last: deque[bytes] = field(default_factory=deque)
    last_bytes: int = 0
    until: bytes = b""  # the time of the last line that was seen
    cut: bool = False

    def take(self, chunks: Iterable[bytes], limit_bytes: int, *, after: bytes = b"") -> bool:
        """Pick from a stream, which ends at a limit; True where it has reached it.

        ``after``: lines up to this time were seen before.
        """
        rest, seen_bytes = b"", 0
        for chunk in chunks:
            seen_bytes += len(chunk)
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()[:_LINE_BYTES]
            for line in lines:
                self._line(line, after)
        if rest and seen_bytes < limit_bytes:
            self._line(rest, after)
        return seen_bytes >= limit_bytes

    def _line(self, line: bytes, after: bytes) -> None:
        stamp = line.partition(b" ")[0]
        if stamp <= after:
            return
        self.until = stamp
        if not any(mark in line for mark in MARKS):
            return
        kept = line[:_LINE_BYTES] + b"\n"
        if not self.last and len(self.first) + len(kept) <= HALF_BYTES:
            self.first += kept
            return
        self.last.append(kept)
        self.last_bytes += len(kept)
        while self.last_bytes > HALF_BYTES:
            self.last_bytes -= len(self.last.popleft())
            self.cut = True

    def text(self) -> bytes:
        """As the reader of a host's log takes it."""
        mark = f"\n{CUT}\n".encode()
        if not self.cut:
            return bytes(self.first) + b"".join(self.last) + mark
        # Both ends of a gap are taken for pieces of lines.
        return bytes(self.first) + mark + b"...\n" + b"".join(self.last)


def read(
    place: Place, limit_s: float, limit_bytes: int = LIMIT_BYTES, go_on: GoOn = lambda: None
) -> bytes:
    """The lines of the container's log. Raises ``HostError`` where it cannot be had."""
    ends = time.monotonic() + limit_s

    def lines(*options: str) -> Iterator[bytes]:
        words = place.log_words(*options, f"--limit-bytes={limit_bytes}")
        return stream(words, place, limit_s=max(1.0, ends - time.monotonic()), go_on=go_on)

    picked = Picked()
    if picked.take(lines(), limit_bytes):
        picked.cut = True
        picked.take(lines(f"--tail={TAIL_LINES}"), limit_bytes, after=picked.until)
    return picked.text()

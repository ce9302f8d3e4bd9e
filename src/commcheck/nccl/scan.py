"""From bytes to the lines that matter, fast: in one pass, with bounded memory, cut anywhere.

Most of a training log is the program's own output. Beyond a file's first megabyte only lines that
hold ``NCCL`` are cut out of the bytes; a chunk that holds one of the rarer marks is read line by
line. Lines are counted on the way, so every fact has its physical line.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

LINE_MOST: Final = 1 << 20
"""Bytes of one line; what is longer is read in pieces of this size."""

CAREFUL_BYTES: Final = 1 << 20
"""Bytes at a file's start that are read line by line whatever is in them."""

MARK: Final = b"NCCL"

ASCEND: Final = (
    *(b"HCCL(", b"HCCP(", b"ROCE(", b"EI00", b"EI9999", b"EJ00", b"RankID:"),
    *(b"Cluster Exception Location", b"createLink para:"),
)
"""Marks of lines of HCCL's modules, its codes, torch_npu's lines on a process, and of those that
follow a code in a job's output and say for whom a rank waits."""

RARE: Final = (*ASCEND, b"Last error", b"RCCL version")
"""Marks of lines without ``NCCL`` that are read too, or that say so of the next line."""

RECORDS: Final = (b'{"', b" stdout P ", b" stderr P ")
"""Marks of container logs, which cut one line into several records: all of them are read."""

ANNOUNCED: Final = b"Last error"
"""PyTorch's mark: the next line is NCCL's last warning, without NCCL's head."""

UNCLEAN: Final = (b"\x1b", b"\r", b"\x00", b"[repeated ")


class Lines(Protocol):
    """What the scanner hands lines to."""

    def clean(self, text: str, numbers: Sequence[int], *, careful: bool) -> None:
        """Whole lines without anything to clean, and the number of each.

        ``careful``: lines without ``NCCL`` are looked at too.
        """

    def hit(self, line: bytes, number: int, *, whole: bool) -> None:
        """A line that holds ``NCCL``. ``whole=False``: its end may be missing."""

    def other(self, line: bytes, number: int) -> None:
        """Any other line of a chunk that is read line by line."""


class Scanner:
    """Cuts one file's bytes into lines for a ``Lines``."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._parts: list[bytes] = []
        self._kept = 0
        self._seen = 0
        self._announced = False
        self._decoder: codecs.IncrementalDecoder | None = None
        self.number = 0

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes, cut anywhere."""
        if not self._seen and chunk[:2] in (b"\xff\xfe", b"\xfe\xff"):
            self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
        self._seen += len(chunk)
        if self._decoder is not None:
            chunk = self._decoder.decode(chunk).encode("utf-8", "replace")
        end = chunk.rfind(b"\n") + 1
        if end:
            self._parts.append(chunk[:end])
            body = b"".join(self._parts)
            self._parts, self._kept = [], 0
            self._body(body)
            chunk = chunk[end:]
        if chunk:
            self._parts.append(chunk)
            self._kept += len(chunk)
            if self._kept >= LINE_MOST:
                self._flush()

    def close(self) -> bool:
        """The last line, which has no end. True where there was one: the file may be cut."""
        cut = self._kept > 0
        if cut:
            self._flush()
        return cut

    def _flush(self) -> None:
        """A line without its end: too long, or the file's last."""
        line = b"".join(self._parts)
        self._parts, self._kept = [], 0
        self.number += 1
        if MARK in line:
            self._lines.hit(line, self.number, whole=False)
        else:
            self._lines.other(line, self.number)

    def _body(self, body: bytes) -> None:
        """Whole lines."""
        if b"\r\n" in body:
            body = body.replace(b"\r\n", b"\n")
        careful = (
            self._seen <= CAREFUL_BYTES or self._announced or any(mark in body for mark in RARE)
        )
        self._announced = ANNOUNCED in body[-4096:]
        clean = _is_clean(body)
        lines = body.count(b"\n")
        if any(mark in body for mark in RECORDS) or (careful and not clean):
            self._line_by_line(body)
        elif careful or (clean and 3 * body.count(MARK) > lines):
            numbers = range(self.number + 1, self.number + 1 + lines)
            self._lines.clean(body[:-1].decode(), numbers, careful=careful)
            self.number += lines
        else:
            self._hits_only(body, clean=clean)

    def _line_by_line(self, body: bytes) -> None:
        hit, other = self._lines.hit, self._lines.other
        for number, line in enumerate(body[:-1].split(b"\n"), self.number + 1):
            if MARK in line:
                hit(line, number, whole=True)
            elif line:
                other(line, number)
        self.number += body.count(b"\n")

    def _hits_only(self, body: bytes, *, clean: bool) -> None:
        number = self.number
        counted = 0
        lines: list[bytes] = []
        numbers: list[int] = []
        at = body.find(MARK)
        while at >= 0:
            start = body.rfind(b"\n", counted, at) + 1 or counted
            end = body.find(b"\n", at)
            number += body.count(b"\n", counted, start) + 1
            counted = end + 1
            lines.append(body[start:end])
            numbers.append(number)
            at = body.find(MARK, counted)
        self.number = number + body.count(b"\n", counted)
        if clean and lines:
            self._lines.clean(b"\n".join(lines).decode(), numbers, careful=False)
            return
        for number, line in zip(numbers, lines, strict=True):
            self._lines.hit(line, number, whole=True)


def _is_clean(body: bytes) -> bool:
    """ASCII without colours, redrawn lines, holes or Ray's notes of repeated lines."""
    return body.isascii() and not any(mark in body for mark in UNCLEAN)


def chunks(data: bytes, size: int = 1 << 18) -> Iterator[bytes]:
    """Bytes in pieces, for what is already in memory."""
    for start in range(0, len(data), size):
        yield data[start : start + size]

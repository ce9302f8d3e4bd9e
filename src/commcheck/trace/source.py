"""The bytes of a trace, block by block, plain or gzip; and what a broken file is called.

Every complaint is one line: the file, what is wrong, what was expected.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, Final

from commcheck import files
from commcheck.errors import UsageError
from commcheck.lazy import dataclass, regex
from commcheck.trace.store import DECODER, Progress

BLOCK: Final = 1 << 18
"""Bytes searched at once: a block, its copy and what is found stay in the second-level cache."""

HEAD_MOST: Final = 4 << 20
"""A trace's keys before its events are a few kB; 4 MiB without events is something else."""

TAIL_MOST: Final = 64 << 20
"""The keys behind the events are held whole; they are a few kB."""

HELD_MOST: Final = 512 << 20
"""Text of a trace that a host sent, which may have packed anything. Its own is a tenth of that."""

EXPECTED: Final = (
    "expected a trace of torch.profiler (an object with traceEvents) or of torch_npu "
    "(trace_view.json, a list of events)"
)

_EVENTS: Final = regex(rb'"traceEvents"\s*:\s*\[')
_GZIP: Final = b"\x1f\x8b"
_PACKED: Final = {
    b"\x28\xb5\x2f\xfd": "zstd (zstd -d)",
    b"PK\x03\x04": "zip (unzip)",
    b"\xfd7zXZ": "xz (xz -d)",
    b"BZh": "bzip2 (bzip2 -d)",
}
_DATABASE: Final = b"SQLite format 3\0"
_TAR: Final = slice(257, 262)
"""Other packers by their first bytes, and what unpacks them."""


_OPEN: Final = '{"traceEvents": []'

Keys = dict[str, object]
"""What stands beside the events of a trace."""


class Foreign(UsageError):
    """The file is no trace, or not a whole one."""

    def __init__(self, file: str, what: str) -> None:
        super().__init__(f"{file}: error: {what} [trace]")


@dataclass(frozen=True, slots=True)
class Held:
    """A trace that is in memory, as a host sent it; ``name`` is what messages call it."""

    name: str
    data: bytes

    def __str__(self) -> str:
        return self.name


Source = Path | Held
"""Where the bytes of a trace come from."""


def opened(source: Source) -> IO[bytes]:
    """The bytes of a source, from their beginning. Raises ``OSError``."""
    return BytesIO(source.data) if isinstance(source, Held) else files.opened(source)


def size_of(source: Source) -> int:
    """How many bytes there are, packed as they may be."""
    return len(source.data) if isinstance(source, Held) else source.stat().st_size


def blocks(path: Source, progress: Progress, size: int = BLOCK) -> Iterator[bytes]:
    """The file's text in blocks of about ``size`` bytes. ``progress`` counts bytes on disk.

    Raises ``Foreign`` for an empty file, for a gzip stream that is cut or damaged, and where the
    file cannot be read.
    """
    try:
        with opened(path) as raw:
            packed = raw.read(2) == _GZIP
            raw.seek(0)
            stream = gzip.GzipFile(fileobj=raw) if packed else raw
            seen = at = 0
            while block := stream.read(size):
                seen += len(block)
                if seen > HELD_MOST and isinstance(path, Held):
                    what = f"unpacks to more than {HELD_MOST >> 20} MiB; profile fewer steps"
                    raise Foreign(str(path), what)
                now = raw.tell()
                progress(now - at)
                at = now
                yield block
    except EOFError:
        raise Foreign(str(path), cut(seen)) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise Foreign(str(path), f"the gzip stream is damaged: {error}") from None
    except OSError as error:
        raise Foreign(str(path), f"cannot be read: {error.strerror or error}") from None
    if not seen:
        raise Foreign(str(path), f"is empty; {EXPECTED}")


def cut(at: int) -> str:
    """What is said of a trace that stops in the middle."""
    return (
        f"is cut off after {at:,} bytes of text: the profiler was interrupted while it wrote. "
        "Device events stand last in a trace, so what is missing cannot be told: "
        "expected a whole file, profile again"
    )


def split_head(path: Source, stream: Iterator[bytes]) -> tuple[Keys | None, bytes]:
    """The keys before the events, and the first bytes of the events.

    The keys are None where the file is a bare list of events. Raises ``Foreign`` where it is
    neither.
    """
    text = b""
    for block in stream:
        text += block
        start = text.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        if start == b"[":
            return None, text[text.index(b"[") + 1 :]
        if start not in (b"{", b""):
            for magic, how in _PACKED.items():
                if text.startswith(magic):
                    raise Foreign(str(path), f"is packed with {how}; expected plain text or gzip")
            if text[_TAR] == b"ustar":
                raise Foreign(str(path), "is an archive (tar -xf); give the folder that it holds")
            if text.startswith(_DATABASE):
                raise Foreign(str(path), f"is a database; {EXPECTED}, with export_type Text")
            raise Foreign(str(path), f"is no JSON object or list; {EXPECTED}")
        found = _EVENTS.search(text)
        if found:
            head = text[: found.start()] + b'"traceEvents": []}'
            try:
                keys = json.loads(head.decode("utf-8-sig", "replace"))
            except (ValueError, RecursionError) as error:
                raise Foreign(
                    str(path), f"is no JSON before its events ({error}); {EXPECTED}"
                ) from None
            return keys, text[found.end() :]
        if len(text) > HEAD_MOST:
            break
    raise Foreign(str(path), f"has no traceEvents; {EXPECTED}")


def tail_keys(tail: bytes) -> Keys | None:
    """The keys after the events, from a file's last bytes; None where the file is cut."""
    text = tail.decode("utf-8", "replace").rstrip()
    at = len(text)
    while (at := text.rfind("]", 0, at)) >= 0:
        # Lists in the tail's own keys end in "]" too: the right one leaves sound JSON behind it.
        if text[:at].rstrip()[-1:] not in ("}", "[", ""):
            continue
        try:
            keys, end = DECODER.raw_decode(_OPEN + text[at + 1 :])
        except (ValueError, RecursionError):
            continue
        if not text[at + 1 + end - len(_OPEN) :].strip():
            return dict(keys)
    return None

"""stdout, where results go, and stderr, where the rest goes: whatever becomes of them."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator
from typing import Final, TextIO, cast

_PLAIN: Final = str.maketrans(
    {"…": "...", "\N{EN DASH}": "-", "\N{MULTIPLICATION SIGN}": "x", "≥": ">=", "≤": "<="}
)
"""What stands for a character that an encoding lacks."""


def within(text: str, encoding: str) -> str:
    """The text in characters of an encoding; what has nothing like it there is ``?``."""
    try:
        return text.encode(encoding).decode(encoding)
    except UnicodeEncodeError:
        return text.translate(_PLAIN).encode(encoding, "replace").decode(encoding)


def columns(fallback: int) -> int:
    """Columns of the terminal behind stdout; COLUMNS, where it is set, is stronger.

    As ``shutil.get_terminal_size``, which loads three libraries of compression first.
    """
    with contextlib.suppress(ValueError):
        if (told := int(os.environ.get("COLUMNS", 0))) > 0:
            return told
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or fallback  # type: ignore[union-attr] # None: as below
    except (AttributeError, ValueError, OSError):  # closed, or no terminal
        return fallback


class Outlet:
    """A stream that cannot stop a run: from the first failure on it is quiet, and what its
    encoding lacks is shown otherwise. ``None``: one that was closed before the program began.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.failure: OSError | ValueError | None = None
        self.encoding: str = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str | bytes) -> int:
        """Write what can be written. Bytes are UTF-8: click writes completions so."""
        if self._stream is not None and self.failure is None:
            told = text if isinstance(text, str) else text.decode("utf-8", "replace")
            try:
                self._stream.write(within(told, self.encoding))
            except (OSError, ValueError) as error:
                self.failure = error
        return len(text)

    def flush(self) -> None:
        """Flush."""
        if self._stream is not None and self.failure is None:
            try:
                self._stream.flush()
            except (OSError, ValueError) as error:
                self.failure = error

    def isatty(self) -> bool:
        """As the stream says."""
        return self._stream is not None and self.failure is None and self._stream.isatty()

    def fileno(self) -> int:
        """As the stream says."""
        if self._stream is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._stream.fileno()

    @property
    def lost(self) -> str:
        """Why what was written is not whole; empty where only its reader has left."""
        if not isinstance(self.failure, OSError) or self.failure.errno == errno.EPIPE:
            return ""
        # A terminal that hung up is a reader that left, too; a disk may say the same and is none.
        if self.failure.errno == errno.EIO and stat.S_ISCHR(os.fstat(self.fileno()).st_mode):
            return ""
        return self.failure.strerror or str(self.failure)

    def end(self) -> None:
        """Flush for the last time; what could not be written is let go of."""
        self.flush()
        if self.failure is not None:
            with contextlib.suppress(OSError, ValueError):
                # Else the interpreter tries again at its end, and fails with a code of its own.
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())


@contextlib.contextmanager
def outlets() -> Iterator[tuple[Outlet, Outlet]]:
    """Within: stdout and stderr are outlets. What was closed stays unused: no file of a run may
    get its number, or what a child prints would go there.
    """
    for number in _STREAMS:
        try:
            os.fstat(number)
        except OSError:
            with contextlib.suppress(OSError):
                null = os.open(os.devnull, os.O_RDWR)
                if null != number:
                    os.dup2(null, number)
                    os.close(null)
    before = sys.stdout, sys.stderr
    out, err = Outlet(before[0]), Outlet(before[1])
    sys.stdout, sys.stderr = cast("TextIO", out), cast("TextIO", err)
    try:
        yield out, err
    finally:
        out.end()
        err.end()
        sys.stdout, sys.stderr = before


_STREAMS: Final = (0, 1, 2)


def say(result: str) -> None:
    """Print a result."""
    print(result.rstrip("\n"), flush=True)


def warn(text: str) -> None:
    """Print a warning, in one line."""
    print(f"commcheck: warning: {text}", file=sys.stderr, flush=True)

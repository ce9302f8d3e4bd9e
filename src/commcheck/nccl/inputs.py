"""Files as an operator names them: files, folders, patterns; small ones, read whole."""

from __future__ import annotations

import glob
import gzip
import os
import zlib
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import IO, Final

from commcheck.errors import UsageError
from commcheck.files import read_rest, read_whole
from commcheck.lazy import dataclass
from commcheck.report.find import files_below

STDIN: Final = "-"

BYTES_MOST: Final = 256 << 20
"""Beyond this a file is no environment, report or dump of a flight recorder."""


@dataclass(frozen=True, slots=True)
class Given:
    """One file: its name as it was given, its bytes, and when it last grew, in s since 1970."""

    name: str
    data: bytes
    changed_s: float | None = None

    @property
    def text(self) -> str:
        """As UTF-8; what is none shows as an escape."""
        return self.data.decode("utf-8", "backslashreplace")


def read_all(paths: Sequence[str], stdin: IO[bytes] | None = None) -> list[Given]:
    """Every file once, by name. Raises ``UsageError`` with all that cannot be read."""
    problems: list[str] = []
    found: dict[str, Given] = {}
    for given in paths:
        if given == STDIN:
            found[STDIN] = Given(STDIN, stdin.read(BYTES_MOST) if stdin else b"")
            continue
        for path in _named(given, problems):
            key = os.path.realpath(path)
            if key not in found:
                try:
                    found[key] = _read(path)
                except (OSError, EOFError, zlib.error) as error:
                    problems.append(f"{path}: {getattr(error, 'strerror', None) or error}")
    if problems:
        raise UsageError(*problems)
    return sorted(found.values(), key=lambda each: each.name)


def _named(given: str, problems: list[str]) -> list[Path]:
    # Path.glob takes no absolute pattern.
    paths = [Path(given)] if Path(given).exists() else list(map(Path, glob.glob(given)))  # noqa: PTH207
    files = [file for path in paths for file in (files_below(path) if path.is_dir() else [path])]
    if not files:
        problems.append(
            f"{given}: no such file, folder or pattern, or the folder holds no file, or none but "
            "those of runs of commcheck"
        )
    return files


def _read(path: Path) -> Given:
    data = read_whole(path, BYTES_MOST)
    if data[:2] == b"\x1f\x8b":
        with gzip.GzipFile(fileobj=BytesIO(data)) as packed:
            data = read_rest(packed, BYTES_MOST)
    return Given(str(path), data, path.stat().st_mtime)

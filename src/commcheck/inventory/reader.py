"""Reading the files of an inventory within limits: text or one clear line, never a surprise."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final

from commcheck.errors import InventoryError, Position
from commcheck.files import opened
from commcheck.inventory import yaml_source
from commcheck.inventory.declared import MAX_ERRORS, Notes, Refused, quoted
from commcheck.lazy import regex

MAX_BYTES: Final = 16 << 20
_MAX_DEPTH: Final = 16
_MAX_FILES: Final = 1000
_MAX_LINES: Final = 100
# What Ansible 2.19 passes over in a folder used as an inventory.
_PASSED_OVER: Final = regex(
    r"^\.|^(group_vars|host_vars|vars_plugins)$"
    r"|(\.(pyc|pyo|swp|bak|rpm|md|txt|rst|orig|cfg|retry)|~)$"
)
# And in a folder of variables: what is hidden, a backup, or has an ending that is not YAML's.
_NOT_VARIABLES: Final = regex(r"^\.|~$|(?<=.)\.(?!(yml|yaml|json)$)[^.]*$")
_UNPRINTABLE: Final = regex("[^\t\n\v\f\r\x1c-\x1e\x20-\x7e\x85\xa0-\ud7ff\ue000-\U0010ffff]")


class Reader:
    """Reads files within limits, and keeps the digest of all that was read and the notes.

    ``beside``: the folders in which ``group_vars`` and ``host_vars`` count.
    """

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.notes = Notes()
        self.beside: list[str] = []
        self._hash = hashlib.sha256()
        self._bytes: dict[str, bytes] = {}

    def add(self, data: bytes) -> None:
        """Make bytes count for the digest; their length too, so that files cannot blur."""
        self._hash.update(b"%d:" % len(data))
        self._hash.update(data)

    def digest(self) -> str:
        """The first 12 hex digits over all that was read."""
        return self._hash.hexdigest()[:12]

    def take(self, notes: Notes) -> None:
        """Add the notes of one source, its errors only up to the limit."""
        self.notes.errors |= set(sorted(notes.errors)[:MAX_ERRORS])
        self.notes.warnings |= notes.warnings

    def raise_errors(self) -> None:
        """Raise ``InventoryError`` with all errors so far, in order of their places."""
        lines = [problem.line() for problem in sorted(self.notes.errors)]
        if more := lines[_MAX_LINES:]:
            lines[_MAX_LINES:] = [f"and {len(more)} errors more"]
        if lines:
            raise InventoryError(*lines)

    def warning_lines(self) -> list[str]:
        """The warnings as complete lines, in order of their places."""
        return [problem.line("warning") for problem in sorted(self.notes.warnings)]

    def text(self, data: bytes, path: str) -> str:
        """Bytes to text, counted for the digest. Raises ``Refused`` for what is no text."""
        self.add(data)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
            at = Position(path, line, column)
            raise Refused(at, f"byte 0x{data[error.start]:02x} is not UTF-8", "encoding") from error
        if bad := _UNPRINTABLE.search(text):
            line = text.count("\n", 0, bad.start()) + 1
            column = bad.start() - (text.rfind("\n", 0, bad.start()) + 1) + 1
            at = Position(path, line, column)
            raise Refused(at, f"the control character {bad[0]!r}: no text file", "binary")
        return text

    def read(self, path: str) -> str:
        """A file as text. Raises ``Refused``."""
        return self.text(self._content(path), path)

    def sources(self) -> dict[str, Path]:
        """The absolute path of every file that was read, by its name in messages."""
        return {path: Path(os.path.abspath(self.cwd / path)) for path in self._bytes}  # noqa: PTH100 - as Ansible, links are not followed

    def _content(self, path: str) -> bytes:
        if path not in self._bytes:
            try:
                with opened(self.cwd / path) as file:
                    data = file.read(MAX_BYTES + 1)
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                raise Refused(Position(path, 1), f"cannot be read: {reason}", "file") from error
            if len(data) > MAX_BYTES:
                raise Refused(Position(path, 1), "larger than 16 MiB: no inventory", "size")
            self._bytes[path] = data
        return self._bytes[path]

    def files(self, source: str) -> list[str]:
        """The inventory files of a path: itself, or what a folder holds, by name."""
        if not os.path.lexists(self.cwd / source):
            hint = "" if "/" in source else f"; for a list of hosts end it with a comma: {source},"
            raise InventoryError(f"{source}:1:1: error: no such file{hint} [file]")
        if not self.is_folder(source):
            return [source]
        found = self._walk(source.rstrip("/") or "/", _PASSED_OVER, 0)
        if len(found) > _MAX_FILES:
            raise InventoryError(
                f"{source}:1:1: error: more than {_MAX_FILES} files: no inventory folder [size]"
            )
        if not found:
            raise InventoryError(f"{source}:1:1: error: no inventory in this folder [no-host]")
        return found

    def variable_files(self, path: str) -> list[str]:
        """The files of one group or host: itself, or the YAML files of a folder, by name."""
        if not self.is_folder(path):
            return [path]
        return self._walk(path, _NOT_VARIABLES, 0)

    def _walk(self, folder: str, passed_over: re.Pattern[str], depth: int) -> list[str]:
        if depth > _MAX_DEPTH:
            raise InventoryError(f"{folder}:1:1: error: folders nested too deeply [depth]")
        found = []
        for name in self.entries(folder):
            if passed_over.search(name):
                continue
            if not name.isprintable():
                raise InventoryError(
                    f"{folder}:1:1: error: it holds a file with the name {quoted(name)} [name]"
                )
            path = f"{folder}/{name}"
            if self.is_folder(path):
                found += self._walk(path, passed_over, depth + 1)
            else:
                found.append(path)
        return found

    def is_folder(self, path: str) -> bool:
        """Whether a path is a folder."""
        return (self.cwd / path).is_dir()

    def entries(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none where it is no folder."""
        if not self.is_folder(folder):
            return []
        try:
            return sorted(os.listdir(self.cwd / folder))  # noqa: PTH208 - names, not paths
        except OSError as error:
            raise InventoryError(
                f"{folder}:1:1: error: cannot be read: {error.strerror} [file]"
            ) from error

    def is_foreign(self, path: str) -> bool:
        """Whether only Ansible can read a file: a program, a plugin's settings, TOML."""
        if Path(path).suffix == ".toml":
            return True
        try:
            data = self._content(path)
        except Refused:
            return False
        if data.startswith((b"#!", b"\x7fELF")):
            return os.access(self.cwd / path, os.X_OK)
        if not re.search(rb"^[\"'\s{]*plugin\b", data, re.MULTILINE):
            return False
        text = data.decode(errors="replace")
        return yaml_source.plugin_of(text, path) is not None

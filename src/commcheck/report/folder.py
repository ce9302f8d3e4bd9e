"""The run folder, and the only place that writes reports.

``events.ndjson`` and ``frames/`` grow as things become known, so a killed run loses nothing;
everything else is rendered from them and replaced whole.
"""

from __future__ import annotations

import base64
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote

from commcheck.collect.base import Frame, State
from commcheck.discover import bundled_folder
from commcheck.errors import RunFolderError, UsageError
from commcheck.report import html, junit, markdown
from commcheck.report.cleaning import mask_bytes
from commcheck.report.document import document
from commcheck.report.events import encode, record_from_events
from commcheck.report.record import Record

EVENTS: Final = "events.ndjson"
RESULTS: Final = "results.json"
SUMMARY: Final = "summary.md"
REPORT: Final = "report.html"
LATEST: Final = "latest"
LAST: Final = "last"
"""What an operator writes for the latest run."""

_OURS: Final = re.compile(r"TEST-commcheck-(physical|library|runtime|application)(-[0-9]+)?\.xml")


class RunFolder:
    """One run's folder. Methods that append may be called from any thread."""

    def __init__(self, path: Path, mode: int = 0o700) -> None:
        self.path = path
        self._mode = mode
        self._lock = threading.Lock()
        self._appending: dict[Path, int] = {}  # descriptors; their files' last lines are whole

    # --- making and finding ---------------------------------------------------------------------

    @classmethod
    def create(cls, base: Path, run_id: str, *, mode: int = 0o700) -> RunFolder:
        """A new folder ``base/run_id``, and ``base/latest`` pointing to it.

        ``mode`` is of folders; files get it without the x bits. Raises ``UsageError`` where
        ``base`` cannot be written.
        """
        path = base / run_id
        try:
            base.mkdir(parents=True, exist_ok=True)
            path.mkdir()
            path.chmod(mode)
        except FileExistsError as error:
            what = "exists already" if base.is_dir() else "is a file, want a folder"
            raise UsageError(f"{path if base.is_dir() else base}: {what}") from error
        except OSError as error:
            raise UsageError(f"{base}: cannot write reports here: {error.strerror}") from error
        _point_latest(base, run_id)
        return cls(path, mode)

    @classmethod
    def open(cls, name: str | Path, base: Path) -> RunFolder:
        """An existing run: a path, a run id, a unique prefix of one, or ``last``.

        Raises ``RunFolderError`` where there is none, or more than one.
        """
        path = Path(name)
        if not (path / EVENTS).is_file():
            path = base / _find(str(name), base)
        return cls(path, path.stat().st_mode & 0o777)

    # --- events and frames ----------------------------------------------------------------------

    def event(self, event: Mapping[str, Any]) -> None:
        """Append one event; it is in the kernel's hands when this returns."""
        self._append(self.path / EVENTS, encode(event))

    def record(self) -> Record:
        """The run as its events tell it. Raises ``RunFolderError``."""
        try:
            with (self.path / EVENTS).open(encoding="utf-8", errors="replace", newline="\n") as f:
                return record_from_events(f)
        except OSError as error:
            raise RunFolderError(f"{self.path / EVENTS}: {error.strerror}") from error
        except RunFolderError as error:
            raise RunFolderError(f"{self.path / EVENTS}: {error}") from error

    def frame(self, host: str, frame: Frame) -> None:
        """Append what one command answered, with secrets masked."""
        line = {
            "key": frame.key,
            **_bytes_field("stdout", frame.stdout),
            **_bytes_field("stderr", frame.stderr),
            "rc": frame.rc,
            "started_s": frame.started_s,
            "ended_s": frame.ended_s,
            "truncated": frame.truncated,
            "state": frame.state,
        }
        self._append(self._frames_path(host), encode(line))

    def frames(self, host: str) -> Iterator[Frame]:
        """A host's frames as they arrived; a last one that a kill cut off is left out.

        Raises ``RunFolderError`` where the file holds anything else.
        """
        path = self._frames_path(host)
        try:
            lines = path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        whole, cut = lines[:-1], lines[-1]
        for number, line in enumerate(whole, start=1):
            try:
                yield _read_frame(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise RunFolderError(f"{path}:{number}: no frame: {error!r}") from error
        del cut  # a frame is whole only with its newline

    def _frames_path(self, host: str) -> Path:
        return self.path / "frames" / f"{file_name(host)}.ndjson"

    def release(self, host: str) -> None:
        """No more frames of this host will come: its file need not be kept open."""
        with self._lock:
            descriptor = self._appending.pop(self._frames_path(host), None)
        if descriptor is not None:
            os.close(descriptor)

    def _append(self, path: Path, line: bytes) -> None:
        with self._lock:
            if path not in self._appending:
                self._make(path.parent)
                _drop_cut_line(path)
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                self._appending[path] = os.open(path, flags, self._file_mode)
            while line:
                line = line[os.write(self._appending[path], line) :]

    @property
    def _file_mode(self) -> int:
        return self._mode & 0o666

    def _make(self, folder: Path) -> None:
        if not folder.is_dir():
            folder.mkdir()
            folder.chmod(self._mode)

    # --- reports --------------------------------------------------------------------------------

    def render(self, record: Record) -> None:
        """Write every report, each replaced whole. Raises ``UsageError`` where it cannot."""
        try:
            body = json.dumps(document(record), ensure_ascii=False, indent=1)
            data = body.encode("utf-8", "backslashreplace")
            _replace(self.path / RESULTS, data + b"\n", self._file_mode)
            folder = self.path / "junit"
            self._make(folder)
            files = junit.render(record)
            _write_junit(folder, files, self._file_mode)
            # Beside the report, so that its links work wherever the folder is carried to.
            _replace(self.path / junit.RUNBOOK, _runbook(), self._file_mode)
            page = html.render(record)
            _replace(self.path / REPORT, page, self._file_mode)
            summary = markdown.render(record)
            _replace(self.path / SUMMARY, summary.encode("utf-8", "replace"), self._file_mode)
        except OSError as error:
            raise UsageError(f"{self.path}: cannot write reports: {error.strerror}") from error

    def copy_junit(self, target: Path) -> None:
        """Copy the JUnit files for a CI job's glob; former files of ours there go away."""
        files = {
            path.name: path.read_bytes()
            for path in sorted((self.path / "junit").iterdir())
            if _OURS.fullmatch(path.name)
        }
        try:
            target.mkdir(parents=True, exist_ok=True)
            _write_junit(target, files, 0o644)
        except OSError as error:
            raise UsageError(f"{target}: cannot write JUnit files: {error.strerror}") from error

    @staticmethod
    def clear_junit(target: Path) -> None:
        """Remove former files of ours before the run: stale green results are the worst kind.

        Raises ``UsageError`` where ``target`` is no folder or they cannot be removed.
        """
        try:
            _remove_ours(target, keep=frozenset())
        except FileNotFoundError:
            return
        except OSError as error:
            what = f"cannot remove former JUnit files: {error.strerror}"
            raise UsageError(f"{target}: {what}") from error


def _runbook() -> bytes:
    return (bundled_folder("checks").parent / junit.RUNBOOK).read_bytes()


def file_name(host: str) -> str:
    """A host's file name: no separator, no leading dot, at most 200 bytes, one to one."""
    name = quote(host.encode("utf-8", "backslashreplace"), safe="@:-_.")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if len(name) > 200:
        name = f"{name[:180]}~{sha256(name.encode()).hexdigest()[:16]}"
    return name


# --- finding a run ------------------------------------------------------------------------------


def _find(name: str, base: Path) -> str:
    try:
        runs = sorted(
            path.name
            for path in base.iterdir()
            if not path.is_symlink() and (path / EVENTS).is_file()
        )
    except OSError as error:
        raise RunFolderError(f"{base}: no folder of runs: {error.strerror}") from error
    if name == LAST:
        latest = base / LATEST
        if latest.is_symlink() and latest.readlink().name in runs:
            return latest.readlink().name
        matching = runs[-1:]
    else:
        matching = [run for run in runs if run == name] or [
            run for run in runs if name and run.startswith(name)
        ]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise RunFolderError(
            f"no run {name!r} in {base}" + (f", the latest is {runs[-1]}" if runs else "")
        )
    raise RunFolderError(f"{name!r} could be any of {', '.join(matching[:5])}")


def _point_latest(base: Path, run_id: str) -> None:
    """A convenience: where links are not possible, ``last`` still finds the newest folder."""
    fresh = base / f".{LATEST}-{run_id}"
    try:
        fresh.symlink_to(run_id)
        fresh.replace(base / LATEST)
    except OSError:
        fresh.unlink(missing_ok=True)


# --- files --------------------------------------------------------------------------------------


def _open(path: Path, flags: int, mode: int = 0) -> IO[bytes]:
    """Never through a link: reports go where the operator said, and nowhere else."""
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    return os.fdopen(descriptor, "r+b" if flags & os.O_RDWR else "wb")


def _replace(path: Path, data: bytes, mode: int) -> None:
    """Write beside and rename. No glob for ``*.xml`` matches the temporary name."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with _open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode) as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def _write_junit(folder: Path, files: Mapping[str, bytes], mode: int) -> None:
    for name, data in files.items():
        _replace(folder / name, data, mode)
    _remove_ours(folder, keep=frozenset(files))


def _remove_ours(folder: Path, keep: frozenset[str]) -> None:
    for path in folder.iterdir():
        if _OURS.fullmatch(path.name) and path.name not in keep and not path.is_dir():
            path.unlink()


def _drop_cut_line(path: Path) -> None:
    """A killed run may have left half a line; what is appended must not run into it."""
    try:
        with _open(path, os.O_RDWR) as stream:
            data = stream.read()
            stream.truncate(data.rfind(b"\n") + 1)
    except FileNotFoundError:
        return


def _bytes_field(name: str, data: bytes) -> dict[str, str]:
    data = mask_bytes(data)
    try:
        return {name: data.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode("ascii")}


def _read_bytes(line: Mapping[str, Any], name: str) -> bytes:
    if name in line:
        return str(line[name]).encode("utf-8")
    return base64.b64decode(line[f"{name}_base64"], validate=True)


def _read_frame(line: Mapping[str, Any]) -> Frame:
    return Frame(
        key=line["key"],
        stdout=_read_bytes(line, "stdout"),
        stderr=_read_bytes(line, "stderr"),
        rc=line["rc"],
        started_s=line["started_s"],
        ended_s=line["ended_s"],
        truncated=line["truncated"],
        state=State(line["state"]),
    )

"""The run folder, and the only place that writes reports.

``events.ndjson`` and ``frames/`` grow as things become known, so a killed run loses nothing;
everything else is rendered from them and replaced whole.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shlex
import stat
import threading
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote

from commcheck.collect.base import Frame
from commcheck.collector import put_off
from commcheck.errors import NotKept, RunFolderError, UsageError
from commcheck.files import lines_of, opened, read_whole
from commcheck.lazy import regex
from commcheck.report import html, junit, markdown, prom
from commcheck.report.document import written
from commcheck.report.events import encode
from commcheck.report.find import EVENTS, LATEST, RESULTS, find
from commcheck.report.frame_lines import frame_lines, read_frame
from commcheck.report.jsons import decoded
from commcheck.report.record import Record
from commcheck.report.replay import record_from_events
from commcheck.report.runbook_pages import as_bundled, with_sections
from commcheck.report.words import RUNBOOK, RUNBOOK_ZH, Lang, say

INVENTORY: Final = "inventory.json"
SUMMARY: Final = "summary.md"
REPORT: Final = "report.html"
METRICS: Final = "metrics.prom"
_LINE_MOST: Final = 256 << 20
"""Of an event, and of the inventory: what ten thousand hosts are asked is a tenth of it."""

_FRAMES_MOST: Final = 1 << 30
"""Of a host, in bytes: its commands' caps together are less."""

_OURS: Final = regex(r"TEST-commcheck-(physical|library|runtime|application)(-[0-9]+)?\.xml")


class RunFolder:
    """One run's folder. Methods that append may be called from any thread.

    They raise ``NotKept`` where nothing can be written any more; the files then end in whole lines.
    """

    def __init__(self, path: Path, mode: int = 0o700) -> None:
        self.path = path
        self._mode = mode
        self._lock = threading.Lock()
        # Descriptors by host, the events' under ""; their files' last lines are whole.
        self._appending: dict[str, int] = {}

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
    def open(cls, name: str | Path, base: Path, *, of_hosts: bool = False) -> RunFolder:
        """An existing run: a path, a run id, a unique prefix of one, ``last``, ``last-green``.

        ``of_hosts``: as in ``find``. Raises ``RunFolderError`` where there is none, or several.
        """
        path = Path(name)
        if not (path / EVENTS).is_file():
            path = base / find(str(name), base, of_hosts=of_hosts)
        return cls(path, path.stat().st_mode & 0o777)

    # --- events and frames ----------------------------------------------------------------------

    def hold(self) -> None:
        """Write to this run alone, until this process ends. Raises ``RunFolderError``.

        What a kill left of a last line is dropped, so that all readers see the same.
        """
        try:
            with self._lock:
                descriptor = self._descriptor("")
        except OSError as error:
            raise RunFolderError(f"{self.path}: cannot write: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # Some network file systems have no locks; that must not keep a run from its folder.
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise RunFolderError(f"{self.path.name}: this run is still going on") from None

    @property
    def is_held(self) -> bool:
        """True while another process writes to this run; False where that cannot be known."""
        try:
            with (self.path / EVENTS).open("rb") as stream:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno in (errno.EAGAIN, errno.EACCES)
        return False

    @property
    def is_empty(self) -> bool:
        """True where not even the first event was written whole."""
        return (self.path / EVENTS).stat().st_size == 0

    def event(self, event: Mapping[str, Any]) -> None:
        """Append one event; it is in the kernel's hands when this returns."""
        self._append("", encode(event))

    def record(self) -> Record:
        """The run as its events tell it. Raises ``RunFolderError``."""
        try:
            path = self.path / EVENTS
            told = TextIOWrapper(opened(path), encoding="utf-8", errors="replace", newline="\n")
            with told, put_off():
                return record_from_events(lines_of(told, _LINE_MOST))
        except OSError as error:
            raise RunFolderError(f"{self.path / EVENTS}: {error.strerror}") from error
        except RunFolderError as error:
            raise RunFolderError(f"{self.path / EVENTS}: {error}") from error

    def keep(self, host: str, *frames: Frame) -> None:
        """Append what commands answered, with secrets masked."""
        self.lines(host, frame_lines(frames))

    def lines(self, host: str, lines: bytes) -> None:
        """Append lines that ``frame_lines`` made."""
        self._append(host, lines)

    def frames(self, host: str, *, of: tuple[str, ...] = ()) -> Iterator[Frame]:
        """A host's frames as they arrived; a last one that a kill cut off is left out.

        ``of``: only those whose key begins so. Raises ``RunFolderError`` where the file holds
        anything else.
        """
        wanted = tuple(f'{{"key":"{key}'.encode() for key in of) or (b"",)
        path = self._frames_path(host)
        try:
            lines = read_whole(path, _FRAMES_MOST).split(b"\n")
        except FileNotFoundError:
            return
        except OSError as error:
            raise RunFolderError(f"{path}: cannot be read: {error.strerror}") from error
        whole, cut = lines[:-1], lines[-1]
        for number, line in enumerate(whole, start=1):
            if not line.startswith(wanted):
                continue
            try:
                yield read_frame(decoded(line))
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
                raise RunFolderError(f"{path}:{number}: no frame: {error!r}") from error
        del cut  # a frame is whole only with its newline

    def _frames_path(self, host: str) -> Path:
        return self.path / "frames" / f"{file_name(host)}.ndjson"

    def release(self, host: str) -> None:
        """No more frames of this host will come: its file need not be kept open."""
        with self._lock:
            descriptor = self._appending.pop(host, None)
        if descriptor is not None:
            os.close(descriptor)

    def _append(self, host: str, line: bytes) -> None:
        with self._lock:
            try:
                _append(self._descriptor(host), line)
            except OSError as error:
                raise NotKept(
                    f"{self.path}: cannot write: {error.strerror}; what is there is whole: "
                    f"mend that, then go on with run --resume {shlex.quote(str(self.path))}"
                ) from error

    def _descriptor(self, host: str) -> int:
        """Of the host's file, or the events', open for appending; the lock is held."""
        if host not in self._appending:
            path = self._frames_path(host) if host else self.path / EVENTS
            self._make(path.parent)
            _drop_cut_line(path)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._appending[host] = os.open(path, flags, self._file_mode)
        return self._appending[host]

    @property
    def _file_mode(self) -> int:
        return self._mode & 0o666

    def _make(self, folder: Path) -> None:
        if folder.is_symlink():
            # A folder from elsewhere must not send what is written outside of it.
            raise NotADirectoryError(errno.ENOTDIR, f"{folder.name} is a link, wanted a folder")
        if not folder.is_dir():
            folder.mkdir()
            folder.chmod(self._mode)

    # --- the inventory --------------------------------------------------------------------------

    def keep_inventory(self, inventory: Mapping[str, Any]) -> None:
        """Keep what the inventory said, so that the run can be judged again without it."""
        data = json.dumps(inventory, ensure_ascii=False, separators=(",", ":"))
        try:
            _replace(self.path / INVENTORY, [data.encode("utf-8", "replace")], self._file_mode)
        except OSError as error:
            raise UsageError(f"{self.path}: cannot write: {error.strerror}") from error

    def inventory(self) -> dict[str, Any]:
        """What ``keep_inventory`` kept. Raises ``RunFolderError``."""
        path = self.path / INVENTORY
        try:
            kept: dict[str, Any] = json.loads(read_whole(path, _LINE_MOST))
        except (OSError, ValueError, RecursionError) as error:
            why = getattr(error, "strerror", None) or error
            raise RunFolderError(
                f"{path}: the run kept no inventory, name one with -i: {why}"
            ) from error
        if not isinstance(kept, dict):
            raise RunFolderError(f"{path}: no inventory, want an object")
        return kept

    # --- reports --------------------------------------------------------------------------------

    def render(
        self,
        record: Record,
        runbook_url: str = RUNBOOK,
        *,
        lang: Lang = "en",
        junit_by: junit.By = "host",
    ) -> None:
        """Write every report, each replaced whole. Raises ``UsageError`` where it cannot.

        ``lang`` is of the summary, and of the page before its reader chooses; ``junit_by`` is what
        a class of the JUnit files is.
        """
        try:
            with put_off():
                self._render(record, runbook_url, lang, junit_by)
        except OSError as error:
            raise UsageError(f"{self.path}: cannot write reports: {error.strerror}") from error

    def _render(self, record: Record, runbook_url: str, lang: Lang, junit_by: junit.By) -> None:
        runbook = _runbook(record, "en")
        read = RUNBOOK_ZH if lang == "zh" and runbook_url == RUNBOOK else runbook_url
        _replace(self.path / RESULTS, written(record), self._file_mode)
        folder = self.path / "junit"
        self._make(folder)
        files = junit.render(record, runbook_url=runbook_url, by=junit_by)
        _write_junit(folder, files, self._file_mode)
        # Beside the report, so that its links work wherever the folder is carried to.
        _replace(self.path / RUNBOOK, [runbook.encode("utf-8", "replace")], self._file_mode)
        if read == RUNBOOK_ZH:
            book = _runbook(record, lang).encode("utf-8", "replace")
            _replace(self.path / read, [book], self._file_mode)
        page = html.render(record, runbook_url=read, lang=lang, runbook=runbook)
        _replace(self.path / REPORT, [page], self._file_mode)
        summary = markdown.render(record, runbook_url=read, lang=lang)
        _replace(self.path / SUMMARY, [summary.encode("utf-8", "replace")], self._file_mode)
        _replace(self.path / METRICS, [prom.render(record)], self._file_mode)

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


def _runbook(record: Record, lang: Lang) -> str:
    """The book of the bundled checks, with what the run's own checks say of themselves."""
    sections = {anchor: say(words, lang) for anchor, words in record.plan.runbook.items()}
    return with_sections(as_bundled(lang), sections) if sections else as_bundled(lang)


def file_name(host: str) -> str:
    """A host's file name: no separator, no leading dot, at most 200 bytes, one to one."""
    name = quote(host.encode("utf-8", "backslashreplace"), safe="@:-_.")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if len(name) > 200:
        name = f"{name[:180]}~{sha256(name.encode()).hexdigest()[:16]}"
    return name


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
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, mode)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"{path.name} is no file")  # a pipe would keep us waiting
    return os.fdopen(descriptor, "r+b" if flags & os.O_RDWR else "wb")


def _append(descriptor: int, line: bytes) -> None:
    """The whole line or nothing of it: the next one must not run into half of it."""
    written = 0
    try:
        while written < len(line):
            written += os.write(descriptor, line[written:] if written else line)
    except OSError:
        if written:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
        raise


def _replace(path: Path, parts: Iterable[bytes], mode: int) -> None:
    """Write beside and rename. No glob for ``*.xml`` matches the temporary name."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        fresh.unlink(missing_ok=True)
        with _open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode) as stream:
            stream.writelines(parts)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def _write_junit(folder: Path, files: Mapping[str, bytes], mode: int) -> None:
    for name, data in files.items():
        _replace(folder / name, [data], mode)
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

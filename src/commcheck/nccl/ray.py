"""What a Ray cluster keeps of a job: its ``runtime_env`` and its logs, by the dashboard's HTTP API.

A driver's log has lost lines: Ray folds what differs only in numbers. So the files of the job's
workers are read, and of the driver only what it wrote itself. Source: the Jobs REST API and the
state API (``/api/v0``) of Ray 2.60.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import IO, Any, Final
from urllib.parse import quote, urlencode, urlsplit

from commcheck.errors import UsageError
from commcheck.lazy import dataclass, regex
from commcheck.metrics.access import Access

SCHEME: Final = "ray:"
TOKEN: Final = "RAY_AUTH_TOKEN"  # noqa: S105 - a variable's name

SILENT_S: Final = 15.0
"""Without a byte for so long, the dashboard is taken for dead."""

FILE_S: Final = 120.0
MOST_BYTES: Final = 256 << 20
"""Of one answer. A driver's log comes as one JSON text, which is held in memory."""

_CHUNK: Final = 1 << 18
_COMPLAINT_BYTES: Final = 2000
_FOLDED: Final = regex(rb"(?:\x1b\[\d+m)?\((?:[A-Za-z_][\w.:<>-]* )?pid=\d+")
_FILE: Final = regex(r"worker-[\w.-]+\.(?:out|err)")
_NO_ANSWER: Final = (
    *(ValueError, TypeError, AttributeError, RecursionError),
    http.client.HTTPException,
)
"""What is raised where something else than Ray answers."""

_LIVE: Final = frozenset({"PENDING", "RUNNING"})


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log: a name for people, and its bytes, which are fetched when they are read.

    Reading raises ``OSError`` where the answer breaks off.
    """

    name: str
    chunks: Iterable[bytes]


class _Refused(Exception):
    """The server's answer is no success: its status, and what it says."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(f"HTTP {status}: {text}")


@dataclass(frozen=True, slots=True)
class Job:
    """One job, as ``ray:http://head:8265/raysubmit_x`` names it, and what Ray says of it."""

    source: str
    api: _Api
    told: Mapping[str, Any]

    @classmethod
    def of(cls, source: str, environment: Mapping[str, str]) -> Job:
        """Ask for the job. Raises ``UsageError`` with one line that says what to do."""
        base, name = _split(source)
        api = _Api(base, _access(environment))
        try:
            if name:
                return cls(source, api, _mapping(api.json(f"/api/jobs/{quote(name, safe='')}")))
            why = "which job?"
        except _Refused as refused:
            if refused.status != 404:
                raise _wrong(source, _advice(refused)) from None
            why = f"no job {name!r};"
        except (OSError, *_NO_ANSWER) as error:
            raise _wrong(source, _said(error)) from None
        raise _wrong(source, f"{why} {api.jobs()}")

    @property
    def is_live(self) -> bool:
        """Whether it may still write."""
        return self.told.get("status") in _LIVE

    def environment(self) -> bytes:
        """Its ``runtime_env``, as a document of that name."""
        return json.dumps({"runtime_env": self.told.get("runtime_env") or {}}).encode()

    def logs(self) -> list[LogFile]:
        """The logs of its driver and its workers; a job without actors and tasks has none."""
        number = str(self.told.get("job_id") or "")
        workers: list[LogFile] = []
        try:
            workers = list(self._of_workers(number)) if number else []
            others = workers
        except (_Refused, OSError, LookupError, *_NO_ANSWER) as error:
            others = [LogFile(f"{self.source} (workers)", _failing(_said(error)))]
        driver = LogFile(f"{self.source} (driver)", self._of_driver(own=bool(workers)))
        return [driver, *others]

    def _of_workers(self, number: str) -> Iterator[LogFile]:
        """Files are named by worker, job and process. With a node its files are gone."""
        nodes = self.api.json("/api/v0/nodes?limit=10000&detail=1")["data"]["result"]["result"]
        for node in nodes:
            if node["state"] != "ALIVE":
                if self._began_before(node.get("end_time_ms")):
                    why = f"{node['node_ip']} left the cluster, and its files with it"
                    yield LogFile(f"{self.source} ({node['node_ip']})", _failing(why))
                continue
            asked = {"node_id": node["node_id"], "glob": f"worker-*-{number}-*"}
            listed = self.api.json(f"/api/v0/logs?{urlencode(asked)}")["data"]["result"]
            for name in sorted(each for names in listed.values() for each in names):
                if not _FILE.fullmatch(name):
                    continue
                of = {"node_id": node["node_id"], "filename": name, "lines": -1}
                chunks = self.api.chunks(f"/api/v0/logs/file?{urlencode(of)}")
                yield LogFile(f"{self.source} ({node['node_ip']} {name})", chunks)

    def _began_before(self, end_ms: object) -> bool:
        """Whether a node that ended then may have carried a part of the job."""
        start_ms = self.told.get("start_time")
        return not (isinstance(end_ms, int) and isinstance(start_ms, int) and end_ms < start_ms)

    def _of_driver(self, *, own: bool) -> Iterator[bytes]:
        """``own``: without what Ray copied there from workers."""
        try:
            name = quote(str(self.told.get("submission_id") or self.told.get("job_id")), safe="")
            text = str(_mapping(self.api.json(f"/api/jobs/{name}/logs")).get("logs") or "")
        except (_Refused, *_NO_ANSWER) as error:
            raise OSError(_said(error)) from None
        lines = text.encode(errors="replace").splitlines(keepends=True)
        yield b"".join(line for line in lines if not (own and _FOLDED.match(line)))


@dataclass(frozen=True, slots=True)
class _Api:
    """A dashboard at ``base``."""

    base: str
    access: Access
    opener: urllib.request.OpenerDirector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "opener", self.access.opener(self.base))

    def json(self, path: str) -> Any:
        """Raises ``_Refused``, ``OSError``, ``HTTPException``; ``ValueError`` for what is none."""
        return json.loads(b"".join(self._read(path)))

    def chunks(self, path: str) -> Iterator[bytes]:
        """A file as it arrives. Raises ``OSError`` only."""
        try:
            yield from self._read(path)
        except (_Refused, http.client.HTTPException) as error:
            raise OSError(_said(error)) from None

    def _read(self, path: str) -> Iterator[bytes]:
        request = urllib.request.Request(self.base + path, headers=dict(self.access.headers))  # noqa: S310 - http and https only
        ends, seen_bytes = time.monotonic() + FILE_S, 0
        try:
            with self.opener.open(request, timeout=SILENT_S) as answer:
                while chunk := answer.read1(_CHUNK):
                    seen_bytes += len(chunk)
                    if seen_bytes > MOST_BYTES:
                        raise OSError(f"longer than {MOST_BYTES >> 20} MiB")
                    if time.monotonic() > ends:
                        raise OSError(f"not read within {FILE_S:g} s")
                    yield chunk
        except urllib.error.HTTPError as error:
            with error:
                raise _Refused(error.code, _gist(error)) from None

    def jobs(self) -> str:
        """What jobs there are, the last ones first."""
        try:
            found = sorted(self.json("/api/jobs/"), key=lambda job: -(job["start_time"] or 0))
            told = [f"{job['submission_id'] or job['job_id']} ({job['status']})" for job in found]
        except (_Refused, OSError, LookupError, *_NO_ANSWER):
            return "the dashboard does not list its jobs"
        more = f" and {len(told) - 5} more" if len(told) > 5 else ""
        return f"there are {', '.join(told[:5])}{more}" if told else "there is none"


def _split(source: str) -> tuple[str, str]:
    """The dashboard's address, and the job's name, "" where there is none."""
    try:
        parts = urlsplit(source.removeprefix(SCHEME))
    except ValueError:  # half an IPv6 address, say
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise UsageError(
            f"{source}: error: a job of Ray is ray:http://HEAD:8265/ID, as `ray job list` shows it "
            "[ray]"
        )
    folder, _, name = parts.path.rpartition("/")
    return f"{parts.scheme}://{parts.netloc}{folder}", name


def _access(environment: Mapping[str, str]) -> Access:
    token = environment.get(TOKEN, "").strip()
    if not (token.isascii() and token.isprintable()):
        raise UsageError(f"error: {TOKEN} holds characters that no header may [ray]")
    return Access({"Authorization": f"Bearer {token}"} if token else {})


def _failing(reason: str) -> Iterator[bytes]:
    raise OSError(reason)
    yield b""  # what makes it fail only when it is read


def _mapping(answer: Any) -> Mapping[str, Any]:
    if not isinstance(answer, Mapping):
        raise ValueError("its answer is no object")
    return answer


def _gist(answer: IO[bytes]) -> str:
    text = answer.read(_COMPLAINT_BYTES).decode(errors="replace")
    return next((line.strip()[:200] for line in text.splitlines() if line.strip()), "no reason")


def _advice(refused: _Refused) -> str:
    hint = f"; set {TOKEN}" if refused.status in (401, 403) else ""
    return f"{refused}{hint}"


def _said(error: Exception) -> str:
    if isinstance(error, (LookupError, *_NO_ANSWER)):
        return "what answers there is no dashboard of Ray"
    if isinstance(error, urllib.error.URLError):
        return f"not reached: {error.reason}"
    return str(error) or type(error).__name__


def _wrong(source: str, why: str) -> UsageError:
    return UsageError(f"{source}: error: {why} [ray]")

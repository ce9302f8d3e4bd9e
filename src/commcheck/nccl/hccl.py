"""Facts of HCCL: plog folders of several ranks, and the codes on a job's own output.

Line grammar, codes and key lines: CANN documentation, "HCCL fault diagnosis" of CANN 7 to 8.5.
"""

from __future__ import annotations

import re
from dataclasses import field
from datetime import UTC, datetime
from typing import Final

from commcheck.lazy import dataclass, regex
from commcheck.nccl.places import RANKS_MOST, At

KEPT_MOST: Final = 20_000

LINE: Final = regex(
    r"\[(?P<level>DEBUG|INFO|WARNING|ERROR|EVENT)\]\s?(?P<module>\w+)\((?P<pid>\d{1,9}),[^)]*\):"
    r"(?P<time>\d{4}-\d\d-\d\d[- ]\d\d:\d\d:\d\d\.\d{3}\.\d{3})\s?\[[^\]:]+:\d+\]\s?"
    r"(?:\[(?P<tid>\d{1,9})\])?(?P<text>.*)"
)
CODE: Final = regex(r"\b(E[A-Z]\d{4})\b")
_STAMP: Final = regex(r"(\d{4})-(\d\d)-(\d\d)[- ](\d\d):(\d\d):(\d\d)\.(\d{3})\.(\d{3})")
_PID: Final = regex(r"\[PID: (\d{1,9})\]")
_RANK: Final = regex(r"\[rank(\d{1,6})\]:")
_ENV: Final = regex(
    r"(HCCL_[A-Z_]+) (?:set by (?:environment|default) to|is set to default value) \[([^\]]*)\]"
)
_KEY: Final = regex(
    r"\[Communicator Key Info\]identifier\[([^\]]+)\] rankSize\[(\d{1,9})\] serverNum\[(\d{1,9})\]"
)
_LOCAL: Final = regex(
    r"\[LocalRank Key Info\]userRank\[(\d{1,9})\] hostIp\[[^\]]*\] devicePhyId\[(\d{1,9})\] "
    r"server\[([^\]]+)\] deviceIp\[([^\]]*)\]"
)
_ENTRY: Final = regex(r"Entry-HcclCommInitRootInfo\w*:ranks\[(\d{1,9})\], rank\[(\d{1,9})\]")
_LINK: Final = regex(
    r"createLink para:rank\[\d+\]-localUserrank\[(\d{1,9})\]-localIpAddr\[([^/\]]+)/(\d{1,9})\], "
    r"remoteRank\[\d+\]-remoteUserrank\[(\d{1,9})\]-remoteIpAddr\[([^/\]]+)/(\d{1,9})\]"
    r"(?:.*isUsedRdma\[([01])\])?(?:.*tag\[(\w+?)_)?"
)
_CONNECTED: Final = regex(r"total connected num is \[(\d{1,9})\]")
_NEED: Final = regex(r"need connect rankNum is \[(\d{1,9})\]")
_INFO: Final = regex(r"connected rankinfo\[LINE \d+\]: ([\[\]\d,;]+)")
_AGENTS: Final = regex(r"Failed to connect agent\[([\d,]+)\]")
_TLS: Final = regex(r"\|\s*(ENABLE|DISABLE)\s*\|\s*LinkInfo")
_BEAT: Final = regex(
    r"crimer rank \[([^/\]]+)/(\d{1,9})\] status\[(LOST|STUCK|ERROR CQE)\] by informer"
)
_LOCATION: Final = regex(
    r"Cluster Exception Location\[[^\]]*\]:\[([^/\]]+)/(\d{1,9})\].*"
    r"ExceptionType:\[(Heartbeat Lost|Stuck|Error cqe) Occurred\]"
)
_TASK: Final = regex(r"Task run failed.*taskID\[(\d{1,9})\], tag\[(\w+?)_([^\]]+)\]")


@dataclass(slots=True, eq=False)
class Npu:
    """One process of the job."""

    pid: int
    files: set[int] = field(default_factory=set)
    rank: int | None = None
    server: str = ""
    device: int | None = None
    device_ip: str = ""
    env: dict[str, str] = field(default_factory=dict)
    tls: dict[str, At] = field(default_factory=dict)
    errors: int = 0
    first_error_s: float | None = None
    last_error_s: float | None = None
    first_error_at: At | None = None
    failed_tags: dict[str, At] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """How reports name it."""
        rank = f"rank {self.rank}" if self.rank is not None else f"pid {self.pid}"
        device = f" device {self.device}" if self.device is not None else ""
        return f"{rank} ({self.server or 'unknown server'}{device})"


@dataclass(frozen=True, slots=True)
class Code:
    """An error code with its text, as printed."""

    code: str
    text: str
    at: At
    time_s: float | None
    pid: int | None
    rank: int | None


@dataclass(frozen=True, slots=True)
class Link:
    """A link that could not be made: who waited for whom. Addresses are the servers'."""

    source: int
    source_server: str
    target: int
    target_server: str
    target_device: int
    rdma: bool | None
    at: At


@dataclass(frozen=True, slots=True)
class Beat:
    """What the heartbeat says of a rank: ``LOST``, ``STUCK`` or ``ERROR CQE``."""

    server: str
    device: int
    status: str
    at: At


@dataclass(slots=True)
class Hccl:
    """Everything that the HCCL lines of the input say."""

    lines: int = 0
    npus: dict[tuple[str, int], Npu] = field(default_factory=dict)
    codes: list[Code] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    beats: list[Beat] = field(default_factory=list)
    nranks: int | None = None
    servers: int | None = None
    need: int | None = None
    connected: int | None = None
    root_at: At | None = None
    connected_ranks: set[int] = field(default_factory=set)
    failed_agents: set[int] = field(default_factory=set)
    has_debug: bool = False

    @property
    def any(self) -> bool:
        """True where the input holds anything of HCCL."""
        return bool(self.lines or self.codes)

    def of_rank(self, rank: int) -> Npu | None:
        """The process of a rank."""
        return next((npu for npu in self.npus.values() if npu.rank == rank), None)


def scope_of(name: str) -> str:
    """What a file's plog folder belongs to: pids are only unique on one server."""
    return re.sub(r"(?:^|/)(?:debug|run|security)/(?:plog|device-\d+)/[^/]*$", "", name)


def line(hccl: Hccl, text: str, at: At, name: str) -> bool:
    """Takes one line. False where it is none of HCCL's."""
    match = LINE.search(text[:4000])
    if match is None:
        return _output(hccl, text, at)
    if match["module"] not in ("HCCL", "HCCP", "ROCE"):
        return False
    hccl.lines += 1
    npu = _npu(hccl, scope_of(name), int(match["pid"]))
    npu.files.add(at[0])
    said, time = match["text"], _seconds(match["time"])
    if match["level"] == "ERROR":
        hccl.has_debug = True
        npu.errors += 1
        npu.first_error_at = npu.first_error_at or at
        if time is not None:
            npu.first_error_s = min(time, npu.first_error_s or time)
            npu.last_error_s = max(time, npu.last_error_s or time)
    _facts(hccl, npu, said, at)
    _code(hccl, said, at, time, npu.pid, npu.rank)
    return True


def _npu(hccl: Hccl, scope: str, pid: int) -> Npu:
    npu = hccl.npus.get((scope, pid))
    if npu is None:
        npu = hccl.npus[scope, pid] = Npu(pid)
    return npu


def _facts(hccl: Hccl, npu: Npu, text: str, at: At) -> None:
    for name, value in _ENV.findall(text):
        npu.env[name] = value
    if match := _KEY.search(text):
        hccl.nranks, hccl.servers = int(match[2]), int(match[3])
    if match := _LOCAL.search(text):
        npu.rank, npu.device = int(match[1]), int(match[2])
        npu.server, npu.device_ip = match[3], match[4]
    elif (match := _ENTRY.search(text)) and npu.rank is None:
        hccl.nranks, npu.rank = hccl.nranks or int(match[1]), int(match[2])
    if match := _TLS.search(text):
        npu.tls.setdefault(match[1], at)
    if match := _TASK.search(text):
        npu.failed_tags.setdefault(f"{match[3]}#{match[1]}#{match[2]}", at)
    if (match := _LINK.search(text)) and len(hccl.links) < KEPT_MOST:
        npu.rank = int(match[1]) if npu.rank is None else npu.rank
        npu.server = npu.server or match[2]
        npu.device = int(match[3]) if npu.device is None else npu.device
        rdma = None if match[7] is None else match[7] == "1"
        hccl.links.append(
            Link(int(match[1]), match[2], int(match[4]), match[5], int(match[6]), rdma, at)
        )
    _group(hccl, text, at)


def _group(hccl: Hccl, text: str, at: At) -> None:
    """Lines on the exchange of root information, and the heartbeat's."""
    if match := _CONNECTED.search(text):
        hccl.connected, hccl.root_at = int(match[1]), at
    if (match := _NEED.search(text)) and int(match[1]) <= RANKS_MOST:
        hccl.need, hccl.root_at = int(match[1]), at
    if match := _INFO.search(text):
        hccl.connected_ranks.update(int(each) for each in re.findall(r"\d{1,19}", match[1]))
    if match := _AGENTS.search(text):
        hccl.failed_agents.update(int(each) for each in match[1].split(",") if each)
        hccl.root_at = hccl.root_at or at
    match = _BEAT.search(text) or _LOCATION.search(text)
    if match and len(hccl.beats) < KEPT_MOST:
        status = {"Heartbeat Lost": "LOST", "Stuck": "STUCK", "Error cqe": "ERROR CQE"}
        hccl.beats.append(Beat(match[1], int(match[2]), status.get(match[3], match[3]), at))


def _output(hccl: Hccl, text: str, at: At) -> bool:
    """A line of the job's own output that carries a code."""
    if not CODE.search(text[:1000]):
        return False
    pid, rank = _PID.search(text[:200]), _RANK.search(text[:200])
    return _code(
        hccl,
        text,
        at,
        _seconds(text),
        int(pid[1]) if pid else None,
        int(rank[1]) if rank else None,
    )


def _code(
    hccl: Hccl, text: str, at: At, time: float | None, pid: int | None, rank: int | None
) -> bool:
    match = CODE.search(text[:1000])
    if match is None or match[1][:2] not in ("EI", "EJ"):
        return False
    if len(hccl.codes) < KEPT_MOST:
        hccl.codes.append(Code(match[1], text.strip()[:400], at, time, pid, rank))
    return True


def _seconds(text: str) -> float | None:
    match = _STAMP.search(text[:300])
    if match is None:
        return None
    numbers = [int(part) for part in match.groups()]
    try:
        whole = datetime(*numbers[:6], tzinfo=UTC)  # type: ignore[misc,arg-type] # six integers
    except ValueError:
        return None
    return whole.timestamp() + numbers[6] / 1e3 + numbers[7] / 1e6

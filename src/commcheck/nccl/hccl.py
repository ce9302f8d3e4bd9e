"""Facts of HCCL: plog folders of several ranks, and the codes on a job's own output.

Line grammar, codes and key lines: CANN documentation, "HCCL fault diagnosis" of CANN 7 to 8.5.
"""

from __future__ import annotations

import re
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import Final

from commcheck.lazy import dataclass, regex
from commcheck.nccl import hccl_links as links
from commcheck.nccl.hccl_codes import WAITING, implied
from commcheck.nccl.hccl_links import End, Link
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
_WORKER: Final = regex(r"\(PID:(\d{1,9}), Device:(-?\d{1,6}), RankID:(-?\d{1,9})\)")
_ASCEND: Final = regex(r"RankID:|torch_npu|\bNPU|\bnpu[A-Z]|\bEH\d{4}")
_CALL: Final = regex(
    r"HCCL function error: .{1,300}?error code is \d{1,6}|ERR02200 DIST call hccl api failed|"
    r"HCCL error in: "
)
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
_CONNECTED: Final = regex(r"total connected num is \[(\d{1,9})\]")
_NEED: Final = regex(r"need connect rankNum is \[(\d{1,9})\]")
_INFO: Final = regex(r"connected rankinfo\[LINE \d+\]: ([\[\]\d,;]+)")
_AGENTS: Final = regex(r"Failed to connect agent\[([\d,]+)\]")
_TIMED_OUT: Final = regex(
    r"(?:wait socket establish|topo exchange (?:server|agent) get socket) timeout"
    r".{0,80}?timeout\[(\d{1,6})"
)
_NIC: Final = regex(
    r"local rank information: nicType\[(\w+)\], logicSuperPodId(?:\[([^\]]*)\]| is not set), "
    r"phySuperPodId\[(-?\d{1,19})\]"
)
_SAME_SCRIPT: Final = "investigating the consistency of cluster script"
"""HCCL's own probe after a link timed out: every peer answered it."""

_BEAT: Final = regex(r"rank \[([^/\]]+)/(\d{1,9})\] status\[(LOST|STUCK|ERROR CQE)\] by ")
_LOCATION: Final = regex(
    r"Cluster Exception Location\[[^\]]*\]:\[([^/\]]+)/(\d{1,9})\].*"
    r"ExceptionType:\[(Heartbeat Lost|Stuck|Error cqe) Occurred\]"
)
_TASK: Final = regex(r"Task run failed.*taskID\[(\d{1,9})\], tag\[(\w+?)_([^\]]+)\]")
_TASK_DEVICE: Final = regex(r"Task run failed, opData information is .{1,80}deviceId\[(\d{1,6})\]")
_TASK_RANK: Final = regex(
    r"Task run failed, groupRank .{1,200}rankSize\[\d+\], rankId\[(\d{1,9})\]"
)


@dataclass(frozen=True, slots=True)
class Code:
    """A line that says what went wrong, as printed. ``code`` is "" where none is told or implied.

    ``time_s``: since the epoch, as if the host's clock were UTC.
    """

    code: str
    text: str
    at: At
    time_s: float | None
    pid: int | None
    rank: int | None


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
    fault: Code | None = None  # its first error whose words are known, else its first
    timeout_s: int | None = None  # how long it waits for a link, as the line of a timeout says
    timed_out_s: float | None = None  # when it first gave up waiting
    timed_out_at: At | None = None
    nic: str = ""  # VNIC_TYPE: HCCS inside a super pod, DEVICE_NIC_TYPE: RoCE
    super_pods: tuple[str, str] = ("", "")  # logical as configured, physical
    failed_tags: dict[str, At] = field(default_factory=dict)
    rows: dict[tuple[int | None, int | None], int] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """How reports name it."""
        rank = f"rank {self.rank}" if self.rank is not None else f"pid {self.pid}"
        device = f" device {self.device}" if self.device is not None else ""
        return f"{rank} ({self.server or 'unknown server'}{device})"


@dataclass(frozen=True, slots=True)
class Worker:
    """What torch_npu prints of a process of the job; None: it did not know."""

    pid: int
    rank: int | None
    device: int | None
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
    calls: list[Code] = field(default_factory=list)  # torch_npu: a call of HCCL failed
    workers: dict[int, Worker] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    losses: list[Link] = field(default_factory=list)
    beats: list[Beat] = field(default_factory=list)
    nranks: int | None = None
    servers: int | None = None
    need: int | None = None
    connected: int | None = None
    root_at: At | None = None
    connected_ranks: set[int] = field(default_factory=set)
    failed_agents: set[int] = field(default_factory=set)
    all_answer: At | None = None  # HCCL's own probe of a rank reached every peer
    some_silent: bool = False  # and that of another one did not
    has_debug: bool = False
    ascend: At | None = None  # torch_npu or the runtime speaks: a job on NPUs
    last_worker: Worker | None = None

    @property
    def any(self) -> bool:
        """True where the input holds anything of HCCL."""
        return bool(self.lines or self.codes or self.calls)

    @property
    def in_reach(self) -> bool:
        """True where HCCL's own probes reached every peer after links had timed out."""
        return self.all_answer is not None and not self.some_silent

    @property
    def said(self) -> list[Code]:
        """All lines that say what went wrong."""
        faults = [npu.fault for npu in self.npus.values() if npu.fault is not None]
        return [*self.codes, *faults, *self.calls]

    @property
    def first(self) -> Code | None:
        """The line to follow: the first by time whose words are known, else the first.

        What a process prints as its code is surer than the words of its plog. But a code that only
        says that it waited hides what its plog tells before.
        """
        first = min(
            self.said,
            key=lambda code: (not code.code, code.time_s is None, code.time_s or 0.0, code.at),
            default=None,
        )
        if first is None or first in self.codes or first.pid is None:
            return first
        told = (code for code in self.codes if code.pid == first.pid)
        return next((code for code in told if code.code not in WAITING), first)

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
        return _output(hccl, text[:4000], at)
    if match["module"] not in ("HCCL", "HCCP", "ROCE"):
        hccl.ascend = hccl.ascend or at
        return False
    hccl.lines += 1
    npu = _npu(hccl, scope_of(name), int(match["pid"]))
    npu.files.add(at[0])
    said, time = match["text"], _seconds(match["time"])
    # By default a debug plog holds errors only, and a run log neither errors nor warnings.
    hccl.has_debug |= match["level"] not in ("INFO", "EVENT")
    _facts(hccl, npu, said)
    _group(hccl, said, at)
    if match["level"] != "INFO":  # of which a run log may have one for each collective
        _failed(hccl, npu, said, at)
    if match["level"] == "ERROR":
        _fault(npu, said, at, time)
    _code(hccl, said, at, time, npu.pid, npu.rank)
    return True


def _npu(hccl: Hccl, scope: str, pid: int) -> Npu:
    npu = hccl.npus.get((scope, pid))
    if npu is None:
        npu = hccl.npus[scope, pid] = Npu(pid)
    return npu


def _fault(npu: Npu, text: str, at: At, time: float | None) -> None:
    npu.errors += 1
    told = CODE.search(text)
    code = told[1] if told and told[1][:2] in ("EI", "EJ") else implied(text)
    if npu.fault is None or (code and not npu.fault.code):
        npu.fault = Code(code, text.strip()[:400], at, time, npu.pid, npu.rank)
    if match := _TIMED_OUT.search(text):
        npu.timeout_s = int(match[1])
        if npu.timed_out_s is None:
            npu.timed_out_s, npu.timed_out_at = time, at


def _facts(hccl: Hccl, npu: Npu, text: str) -> None:
    for name, value in _ENV.findall(text):
        npu.env[name] = value
    if match := _KEY.search(text):
        hccl.nranks, hccl.servers = int(match[2]), int(match[3])
    if match := _LOCAL.search(text):
        npu.rank, npu.device = int(match[1]), int(match[2])
        npu.server, npu.device_ip = match[3], match[4]
    elif (match := _ENTRY.search(text)) and npu.rank is None:
        hccl.nranks, npu.rank = hccl.nranks or int(match[1]), int(match[2])


def _failed(hccl: Hccl, npu: Npu, text: str, at: At) -> None:
    """A task that failed on the device, and whose it was; a link that could not be made."""
    if match := _NIC.search(text):
        npu.nic, npu.super_pods = match[1], (match[2] or "", match[3])
    if match := _TASK.search(text):
        npu.failed_tags.setdefault(f"{match[3]}#{match[1]}#{match[2]}", at)
    if npu.rank is None and (match := _TASK_RANK.search(text)):
        npu.rank = int(match[1])
    if npu.device is None and (match := _TASK_DEVICE.search(text)):
        npu.device = int(match[1])
    if _SAME_SCRIPT in text:
        hccl.all_answer = hccl.all_answer or at
    _links(hccl, npu, text, at)


def _links(hccl: Hccl, npu: Npu, text: str, at: At) -> None:
    """A row of the table of links, and the line behind it that says where the same ranks are."""
    if match := links.ROW.search(text):
        if match[6] in ("ENABLE", "DISABLE"):
            npu.tls.setdefault(match[6], at)
        if match[5] != "connecting" and len(hccl.links) < KEPT_MOST:
            npu.device_ip = npu.device_ip or match[3]
            npu.rank = int(match[4]) if npu.rank is None else npu.rank
            row = Link(
                End(int(match[4]), npu.server, npu.device, match[3]),
                End(int(match[2]), address=match[1]),
                None,
                at,
            )
            npu.rows[row.source.rank, row.target.rank] = len(hccl.links)
            hccl.links.append(row)
    elif link := links.created(text, at):
        npu.rank = link.source.rank if npu.rank is None else npu.rank
        npu.server = npu.server or link.source.server
        npu.device = link.source.device if npu.device is None else npu.device
        index = npu.rows.pop((link.source.rank, link.target.rank), None)
        if index is not None:
            hccl.links[index] = links.with_addresses(link, hccl.links[index])
        elif len(hccl.links) < KEPT_MOST:
            hccl.links.append(link)
    else:
        _probed(hccl, text, at)


def _probed(hccl: Hccl, text: str, at: At) -> None:
    """Pairs that HCCL names itself: cut ones, and ones that lost packets."""
    if (link := links.detected(text, at)) and len(hccl.links) < KEPT_MOST:
        hccl.some_silent = True
        hccl.links.append(link)
    if (link := links.lost(text, at)) and len(hccl.losses) < KEPT_MOST:
        hccl.losses.append(link)


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
    _beats(hccl, text, at)


def _beats(hccl: Hccl, text: str, at: At) -> None:
    match = _BEAT.search(text) or _LOCATION.search(text)
    if match and len(hccl.beats) < KEPT_MOST:
        status = {"Heartbeat Lost": "LOST", "Stuck": "STUCK", "Error cqe": "ERROR CQE"}
        hccl.beats.append(Beat(match[1], int(match[2]), status.get(match[3], match[3]), at))


def _output(hccl: Hccl, text: str, at: At) -> bool:
    """A line of the job's own output that carries a code, or says which rank a process is."""
    if match := _WORKER.search(text):
        pid, device, rank = (None if part[0] == "-" else int(part) for part in match.groups())
        if pid is not None:
            known = hccl.workers.get(pid)
            if known is not None and (known.rank, known.device) != (rank, device):
                rank = device = None  # two servers have the pid
            hccl.last_worker = hccl.workers[pid] = Worker(pid, rank, device, at)
    if _ASCEND.search(text):
        hccl.ascend = hccl.ascend or at
    pid_told, rank_told = _PID.search(text[:200]), _RANK.search(text[:200])
    pid = int(pid_told[1]) if pid_told else None
    rank = int(rank_told[1]) if rank_told else None
    last = hccl.last_worker
    if last is not None and pid is rank is None and last.at in (at, (at[0], at[1] - 1)):
        pid = last.pid  # CANN's own text follows torch_npu's line on the process
    is_code = _code(hccl, text, at, _seconds(text), pid, rank)
    # What a code is about may stand on its own line, or on those behind it.
    link = links.created(text, at)
    if link is not None and len(hccl.links) < KEPT_MOST:
        hccl.links.append(link)
    _beats(hccl, text, at)
    if is_code:
        _probed(hccl, text, at)
    return is_code or link is not None or _call(hccl, text, at, pid, rank)


def _call(hccl: Hccl, text: str, at: At, pid: int | None, rank: int | None) -> bool:
    """A call of HCCL that torch_npu says failed; its next line tells whose it was."""
    match = _CALL.search(text)
    if match is None:
        return False
    before = hccl.calls[-1] if hccl.calls else None
    if pid is not None and before and before.pid is None and before.at == (at[0], at[1] - 1):
        hccl.calls[-1] = replace(before, pid=pid)
    elif len(hccl.calls) < KEPT_MOST:
        said = text[match.start() :].strip()[:400]
        hccl.calls.append(Code("", said, at, _seconds(text), pid, rank))
    return True


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

"""Lines without NCCL's head that are worth reading: banners, PyTorch's watchdog, pastes.

People post a few lines: an ``export``, a row of ``show_gids``, a stack trace in which JAX or
PyTorch quotes NCCL's last warning. They are read for what they hold, and nothing more.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from commcheck.lazy import regex
from commcheck.nccl import errors, hccl, messages
from commcheck.nccl.facts import SAMPLES_MOST, Ended, Process, Progress, Timeout
from commcheck.nccl.places import At

if TYPE_CHECKING:
    from commcheck.nccl.reader import Desk

TIMEOUTS_MOST: Final = 100_000

_WATCHDOG: Final = regex(
    r"\[Rank (\d{1,9})\] Watchdog caught collective operation timeout: "
    r"WorkNCCL\(SeqNum=(\d{1,9}), OpType=(\w+),.*?Timeout\(ms\)=(\d{1,9})\)"
)
# Torch 2.1 to 2.3 name the group by a number, 2.4 adds its description, later ones an id that all
# ranks share: "[PG 1 Rank 0]", "[PG 0 (default_pg) Rank 0]", "[PG ID 0 PG GUID 0(default_pg) ...".
_GROUP: Final = regex(
    r"\[PG (?:ID )?(?P<id>\d{1,9})"
    r"(?: PG GUID (?P<guid>[^\]]{1,200}?)| \((?P<name>[^\]]{1,200}?)\))? Rank (?P<rank>\d{1,9})\]"
)
_ALONE: Final = regex(r"\[Rank (?P<rank>\d{1,9})\]")
# "NCCL" is gone from it in torch 2.7; later ones tell what was started, too (pytorch#183656).
_WORK: Final = regex(
    r"[Ll]ast enqueued (?:\w+ )?work: (-?\d{1,9}),(?: last started work: [^,]{1,80},)? "
    r"last completed (?:\w+ )?work: (-?\d{1,9})"
)
_FAILED: Final = regex(r"(?:at work|at work sequence id|Timeout at NCCL work): (\d{1,9})")
_ECHO: Final = ("what():", "terminated with exception")
"""What ends the process says its time-out once more, mostly without the global rank."""

_TOLD: Final = regex(r"due to a collective timeout from +rank (\d{1,9})")
_RANK: Final = regex(r"\[rank(\d{1,6})\]:")
_TORCH: Final = regex(r"NCCL error in: .*NCCL version (\d{1,9})\.(\d{1,9})\.(\d{1,9})")
_EXPORT: Final = regex(
    r"(?:[>*$#\-\s]|export |ENV |-x |-e )*((?:NCCL|HCCL|TORCH_NCCL|UCX|GLOO)_[A-Z0-9_]+)=(\S*)"
)
_ENDS: Final = regex(
    r"NCCL error in: .{0,300}?, NCCL version|is setting up NCCL communicator and retrieving .*error"
    r"|we are taking the entire process down"
    r"|(?P<stuck>Heartbeat monitor timed out|watchdog got stuck for \d+ seconds)"
)
"""What PyTorch says as it ends a process, with or without NCCL's own words about it."""

_QUOTED: Final = regex(r"[Ll]ast NCCL warning\(error\) log entry \(may be unrelated\):? ?(.*)")
_GID: Final = regex(
    r"[|\s]*([\w-]+)\s+(\d{1,3})\s+(\d{1,3})\s+([0-9a-f]{4}(?::[0-9a-f]{4}){7})"
    r"(?:\s+(\d+\.\d+\.\d+\.\d+))?\s+(v[12])\s+(\S+)\s*"
)
_RANK_LINE: Final = regex(
    r"#?\s*#\s+Rank\s+(\d{1,9})\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+([\w.-]+) device\s+\d+ \[.*"
)
_TAIL: Final = regex(r"Channel \d+(?:/\d+)? : \d+\[[0-9a-f]+\] -> \d+\[|NCCL INFO ")
"""What NCCL prints behind its head, which is lost here."""

_ASCEND: Final = (
    *("HCC", "EI00", "EI9999", "EJ00", "ROCE(", "RankID:", "NPU", "torch_npu"),
    *("Cluster Exception Location", "createLink para:"),
)
"""Marks of CANN's and torch_npu's lines."""

_FENCE: Final = regex(r"^\s*(?:>\s?)*(?:`{3,}\w*\s*)?")


class Loose:
    """Reads one file's lines that have no NCCL head."""

    def __init__(self, desk: Desk, file: int) -> None:
        self._desk = desk
        self._job = desk.job
        self._file = file
        self._quotes: list[int | None] = []

    def line(self, text: str, number: int) -> None:
        """One line, unwrapped from what encodes it."""
        at = (self._file, number)
        if self._quotes:
            rank = self._quotes.pop()
            self._quoted(text.split("]: ", 1)[-1], rank, at)
        if any(mark in text for mark in _ASCEND):
            name = self._job.files[self._file]
            if hccl.line(self._job.hccl, text, at, name):
                return
        if "ProcessGroupNCCL" in text or "Watchdog" in text:
            self._torch(text, at)
        elif "NCCL version " in text:
            self._banner(text)
        elif "Last error:" in text:
            rank_mark = _RANK.search(text)
            self._quotes = [int(rank_mark[1]) if rank_mark else None]
        elif "RCCL version" in text:
            self._job.rccl = self._job.rccl or at
        elif "CCL_" in text or "=" in text[:80]:
            self._pasted(text)
        elif _TAIL.search(text[:200]):
            self._job.stats.fragments += 1
        elif "Pid" in text:
            match = _RANK_LINE.fullmatch(text)
            if match is not None and len(self._job.rank_hosts) < TIMEOUTS_MOST:
                self._job.rank_hosts[int(match[1])] = match[2].partition(".")[0]
        elif len(self._job.pasted_gids) < SAMPLES_MOST:
            self._gid(text)
        if "NCCL" in text:
            self._quoted_inside(text, at)
            ends = _ENDS.search(text[:2000])
            if ends is not None and len(self._job.ended) < SAMPLES_MOST:
                mark = _RANK.search(text[:2000])
                rank = int(mark[1]) if mark else None
                stuck = ends["stuck"] is not None
                self._job.ended.append(Ended(text[ends.start() :][:300], at, rank, stuck))

    def _banner(self, text: str) -> None:
        match = messages.BANNER.search(text)
        if match is not None:
            messages.banner(self._job, match)
        match = _TORCH.search(text[:2000])
        if match is not None:
            self._job.torch_version = (int(match[1]), int(match[2]), int(match[3]))

    def _torch(self, text: str, at: At) -> None:
        text = text[:2000]
        rank_mark = _RANK.search(text)
        told = _GROUP.search(text)
        group = _name_of(told) if told else ""
        match = _WATCHDOG.search(text)
        if match is not None and len(self._job.timeouts) < TIMEOUTS_MOST:
            rank, seq, op = int((rank_mark or match)[1]), int(match[2]), match[3]
            echo = rank_mark is None and any(mark in text for mark in _ECHO)
            if not (echo and any((t.seq, t.op) == (seq, op) for t in self._job.timeouts)):
                self._job.timeouts.append(Timeout(rank, seq, op, int(match[4]), at, group))
        work = _WORK.search(text)
        alone = told or _ALONE.search(text)
        if work is not None and alone is not None and len(self._job.progress) < TIMEOUTS_MOST:
            failed = _FAILED.search(text)
            by = _TOLD.search(text)
            self._job.progress.append(
                Progress(
                    rank=int(rank_mark[1] if rank_mark else alone["rank"]),
                    group=group,
                    work=int(failed[1]) if failed else None,
                    enqueued=int(work[1]),
                    completed=int(work[2]),
                    at=at,
                    told_by=int(by[1]) if by else None,
                )
            )
        self._banner(text)

    def _pasted(self, text: str) -> None:
        match = _EXPORT.match(_FENCE.sub("", text[:400]))
        if match is not None and len(self._job.pasted_env) < SAMPLES_MOST:
            self._job.pasted_env[match[1]] = match[2].strip("'\"`")

    def _gid(self, text: str) -> None:
        match = _GID.fullmatch(text) if len(text) < 200 else None
        if match is not None:
            self._job.pasted_gids.append(
                {
                    "device": match[1],
                    "port": match[2],
                    "index": match[3],
                    "gid": match[4],
                    "version": match[6],
                    "netdev": match[7],
                }
            )

    def _quoted_inside(self, text: str, at: At) -> None:
        """JAX and others quote NCCL's last warning on one line; some print its text bare."""
        match = _QUOTED.search(text[:4000])
        said = match[1] if match else text
        if match or "NCCL WARN" in text or "NCCL error" in text or "NCCL operation" in text:
            self._quoted(said, None, at)

    def _quoted(self, text: str, rank: int | None, at: At) -> None:
        if errors.classify(text) is None:
            return
        host = self._job.rank_hosts.get(rank, "") if rank is not None else ""
        proc = self._nobody(host, rank, at)
        self._desk.on_error.warn(proc, text, at, "")

    def _nobody(self, host: str, rank: int | None, at: At) -> Process:
        """Who said it is not told: a process without a pid, one for each rank and file."""
        key = (host, -1 if rank is None else -2 - rank, at[0])
        proc = self._job.procs.get(key)
        if proc is None:
            proc = self._job.procs[key] = Process(host, 0, at, held=None, global_rank=rank)
        return proc


def _name_of(told: re.Match[str]) -> str:
    """A process group's name, the same on all its ranks."""
    return told["guid"] or (f"{told['id']}({told['name']})" if told["name"] else told["id"])

"""What the processes on a host say of their job: ranks that are gone, stopped, or of two jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from commcheck.check import failed, passed, warned
from commcheck.command import whole_number
from commcheck.model import Cause, Verdict, Words
from commcheck.nccl.causes import READS, step
from commcheck.nccl.flight_groups import some
from commcheck.nccl.processes import Process, Users, jobs, ranks

ID: Final = "library.running-job"
TITLE: Final = Words("Ranks of the running job keep step", "运行中作业的各 rank 步调一致")

RANK_GONE: Final = Cause(
    slug="job-rank-gone",
    title=Words("A rank of the job is gone", "作业的某个 rank 已消失"),
    meaning=Words(
        "The launcher started more ranks on this host than still run: the others wait for them.",
        "启动器在本机启动的 rank 多于仍在运行的：其余 rank 正在等待。",
    ),
    remedies=(
        step(
            "Why did it end? Out of memory, Xid, or a crash of its own.",
            "查原因：内存不足、Xid 或程序崩溃。",
            "dmesg -T",
            before=READS,
        ),
    ),
)
RANK_STOPPED: Final = Cause(
    slug="job-rank-stopped",
    title=Words("A rank of the job is stopped", "作业的某个 rank 被暂停"),
    meaning=Words(
        "Its process is in state T: a debugger, or a signal. All others wait for it.",
        "进程处于 T 状态：被调试器或信号暂停。其余 rank 都在等待。",
    ),
    remedies=(
        step(
            "Shows who holds it; kill -CONT lets it go on.",
            "查看是谁暂停了它；kill -CONT 可使其继续。",
            "ps -o pid,ppid,stat,cmd -p {pid}",
            before=READS,
        ),
    ),
)
RANK_TWICE: Final = Cause(
    slug="job-rank-twice",
    title=Words("Two processes have the same rank", "两个进程的 rank 相同"),
    meaning=Words(
        "A process of an earlier attempt is left over and holds its GPU.",
        "上一次尝试的进程残留并占用 GPU。",
    ),
    remedies=(
        step(
            "Shows when each was started; the older one is left over.",
            "查看启动时间；较早的为残留进程。",
            "ps -o pid,lstart,cmd -p {pid}",
            before=READS,
        ),
    ),
)


def judge(users: Users) -> tuple[Verdict, ...]:
    """The verdicts on every job of the host; at least one process must be there."""
    members = ranks(users)
    found: list[Verdict] = []
    for name, of_job in jobs(members).items():
        found += _gone(name, of_job)
        found += _twice(name, of_job)
    found += _stopped(users)
    if found:
        return tuple(found)
    return (_runs(users, members),)


def _number(process: Process, name: str) -> int | None:
    return whole_number(process.get(name), 7)


def _gone(name: str, of_job: Sequence[Process]) -> list[Verdict]:
    local = {_number(process, "LOCAL_WORLD_SIZE") for process in of_job}
    size = next(iter(local)) if len(local) == 1 else None
    there = {n for process in of_job if (n := _number(process, "LOCAL_RANK")) is not None}
    if not size or size > 1024 or not there or max(there) >= size:
        return []
    gone = sorted(set(range(size)) - there)
    if not gone:
        return []
    reason = f"job {name}: {len(there)} of {size} ranks of this host run; local {some(gone)} gone"
    measured = {"local_ranks": size, "local_ranks_gone": gone}
    return [failed(RANK_GONE, reason, rule="JOB-001", measured=measured)]


def _twice(name: str, of_job: Sequence[Process]) -> list[Verdict]:
    counts = Counter(process.rank for process in of_job)
    twice = sorted(rank for rank, count in counts.items() if count > 1 and rank is not None)
    if not twice:
        return []
    pids = [str(process.pid) for process in of_job if process.rank in twice]
    reason = f"job {name}: {some(twice)} twice, processes {', '.join(pids[:8])}"
    return [warned(RANK_TWICE, reason, rule="JOB-002", pid=",".join(pids[:8]))]


def _stopped(users: Users) -> list[Verdict]:
    found = []
    for process in users.processes:
        if process.pid in users.stopped:
            named = f"rank {process.rank}, " if process.rank is not None else ""
            reason = f"{named}process {process.pid} is stopped (state T)"
            found.append(failed(RANK_STOPPED, reason, rule="JOB-003", pid=process.pid))
    return found


def _runs(users: Users, members: Sequence[Process]) -> Verdict:
    known = jobs(members)
    parts = []
    for name, of_job in list(known.items())[:4]:
        numbers = sorted({process.rank for process in of_job if process.rank is not None})
        world = _number(of_job[0], "WORLD_SIZE")
        parts.append(f"{some(numbers)}{f' of {world}' if world else ''} of job {name}")
    others = len(members) - sum(len(each) for each in known.values())
    if others:
        parts.append(f"{others} process{'es' if others > 1 else ''} without a rank")
    hidden = "; processes of other users could not be looked at" if users.hidden else ""
    measured = {"processes": len(users.processes), "ranks": len(members), "jobs": len(known)}
    return replace(
        passed(f"{', '.join(parts)} run here{hidden}", measured=measured), rule="JOB-001"
    )

"""Rules on reports of NCCL's RAS service, RAS-001 to RAS-011: on one, or on several of one job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from commcheck.check import failed, passed, undecidable, warned
from commcheck.lazy import dataclass
from commcheck.model import Cause, Verdict, Words
from commcheck.nccl.causes import READS, step
from commcheck.nccl.flight_groups import some
from commcheck.nccl.ras import FINE, Comm, RankState, Report

ID: Final = "library.ras"
TITLE: Final = Words("NCCL's RAS: who is alive, how far", "NCCL RAS：存活与进度")

STILL_S: Final = 60.0
"""Seconds without any new collective after which a difference is no coincidence."""

APART_S: Final = 10.0
"""Seconds between two reports for "still not there" to mean something."""

SLOW_S: Final = 10.0

CODES: Final[Mapping[int, str]] = {
    1: "unhandled CUDA error",
    2: "system error",
    3: "internal error",
    4: "invalid argument",
    5: "invalid usage",
    6: "remote error",
    8: "timeout",
}
"""Result codes of NCCL (nccl.h)."""

DEAD: Final = Cause(
    slug="ras-process-dead",
    title=Words("A process of the job is dead", "作业的某个进程已死"),
    meaning=Words(
        "NCCL lost it for good: it ended, was killed, or its host went away. The job cannot go on.",
        "NCCL 已确认失联：进程退出、被杀或主机消失。作业无法继续。",
    ),
    remedies=(
        step(
            "On that host: why did it end? Out of memory, Xid, or a crash of its own.",
            "在该主机查原因：内存不足、Xid 或程序崩溃。",
            "dmesg -T",
            before=READS,
        ),
    ),
)
GONE: Final = Cause(
    slug="ras-process-silent",
    title=Words("A process of the job does not answer", "作业的某个进程无响应"),
    meaning=Words(
        "It is stopped, swapped out or cut off from the bootstrap network; the others still wait.",
        "进程被停止、换出，或与引导网络断开；其余进程仍在等待。",
    ),
    remedies=(
        step(
            "On that host: state T is stopped, D waits for the kernel.",
            "在该主机查看：状态 T 为被停止，D 为等待内核。",
            "ps -o pid,stat,wchan:30,cmd -p {pid}",
            before=READS,
        ),
    ),
)
ERROR: Final = Cause(
    slug="ras-rank-error",
    title=Words("A rank reports an error", "某 rank 报告错误"),
    meaning=Words(
        "NCCL met an error that the program has not acted on: the job hangs until its watchdog.",
        "NCCL 已出错而程序未处理：作业会一直挂起到看门狗超时。",
    ),
    remedies=(
        step(
            "The first warning of that process says what it was.",
            "查看该进程日志中的第一条告警。",
            "grep -a 'NCCL WARN' LOG",
            before=READS,
        ),
    ),
)
BEHIND: Final = Cause(
    slug="ras-rank-behind",
    title=Words("Ranks are behind the others", "部分 rank 落后"),
    meaning=Words(
        "They have launched fewer collectives, and nothing moves: all others wait for them.",
        "它们发起的集合通信更少且不再前进：其余 rank 都在等待。",
    ),
    remedies=(
        step(
            "Shows where that process stands.",
            "查看该进程停在何处。",
            "py-spy dump --pid {pid}",
            before=READS,
        ),
    ),
)
STATES: Final = Cause(
    slug="ras-states-differ",
    title=Words("Ranks are in different states", "各 rank 所处状态不同"),
    meaning=Words(
        "Some still initialise or already finalize a communicator that others run.",
        "部分 rank 仍在初始化或已在结束该通信域，其他 rank 仍在运行。",
    ),
    remedies=(
        step("Ask again after two minutes.", "两分钟后再查询。", "ncclras -v", before=READS),
    ),
)
NO_PROGRESS: Final = Cause(
    slug="ras-no-progress",
    title=Words("No new collective", "没有新的集合通信"),
    meaning=Words(
        "All ranks are inside one kernel, or compute, save a checkpoint, or use CUDA graphs: only "
        "where the job should move is this a hang.",
        "所有 rank 处于同一内核中，或在计算、保存检查点、使用 CUDA Graph："
        "仅当作业本应前进时才是挂起。",
    ),
    remedies=(
        step(
            "Shows whether the GPUs work, and layer 1 whether the links do.",
            "查看 GPU 是否在工作；链路由第一层检查。",
            "nvidia-smi dmon -c 3",
            before=READS,
        ),
    ),
)
SLOW: Final = Cause(
    slug="ras-answers-slowly",
    title=Words("The job answers slowly", "作业响应缓慢"),
    meaning=Words(
        "The bootstrap network is slow, or a process is half dead.",
        "引导网络缓慢，或某进程半死。",
    ),
    remedies=(
        step(
            "The interface over which ranks find each other.",
            "检查 rank 互相发现所用的接口。",
            "ip -br addr",
            before=READS,
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Poll:
    """A report, and when it was taken, in seconds on one clock; None: not known."""

    report: Report
    at_s: float | None = None


def judge(polls: Sequence[Poll], world: int | None = None) -> tuple[Verdict, ...]:
    """The verdicts on reports of one job in their order. ``world``: ranks that it should have."""
    last = polls[-1].report
    span = _span(polls)
    found = [
        *_dead(last),
        *_silent(polls, span),
        *_errors(last),
        *_behind(polls, span),
        *_states(polls, span),
        *_slow(polls),
        *_too_few(polls, world),
    ]
    if any(verdict.cause or verdict.kind for verdict in found):
        return tuple(sorted(found, key=lambda verdict: verdict.cause is None))
    return (_running(polls, span),)


def _span(polls: Sequence[Poll]) -> float | None:
    """Seconds from the first report to the last."""
    first, last = polls[0].at_s, polls[-1].at_s
    return None if first is None or last is None else max(0.0, last - first)


def _moved(polls: Sequence[Poll], only: str | None = None) -> bool | None:
    """True where a rank launched something between two reports; None where they do not tell."""
    told = False
    for before, after in pairwise(polls):
        old, new = before.report.counts(), after.report.counts()
        both = [key for key in old.keys() & new.keys() if only is None or key[0] == only]
        told = told or bool(both)
        if any(old[key] != new[key] for key in both):
            return True
    return False if told else None


def _ranks_of(report: Report, proc: object) -> list[int]:
    return sorted({rank.rank for comm in report.comms for rank in comm.ranks if rank.proc == proc})


def _dead(report: Report) -> list[Verdict]:
    found = []
    for proc in report.dead:
        ranks = _ranks_of(report, proc)
        named = f", {some(ranks)}" if ranks else ""
        verdict = failed(
            DEAD,
            f"{proc}{named} is dead",
            rule="RAS-002",
            measured={"pid": proc.pid, "ranks": ranks[:50]},
        )
        found.append(replace(verdict, hosts=(proc.node,)))
    return found


def _silent(polls: Sequence[Poll], span: float | None) -> list[Verdict]:
    last = polls[-1].report
    found = []
    for proc in last.unreachable:
        before = [poll for poll in polls[:-1] if proc in poll.report.unreachable]
        ranks = _ranks_of(last, proc)
        named = f"{proc}{f', {some(ranks)}' if ranks else ''}"
        if before and span is not None and span >= APART_S:
            verdict = failed(
                GONE,
                f"{named} does not answer, for {span:.0f} s",
                rule="RAS-003",
                pid=proc.pid,
                measured={"pid": proc.pid, "ranks": ranks[:50]},
            )
            found.append(replace(verdict, hosts=(proc.node,)))
        else:
            reason = f"{named} did not answer once"
            told = undecidable(reason, turn_on=f"ask again after {APART_S:.0f} s")
            found.append(replace(told, rule="RAS-003", hosts=(proc.node,)))
    return found


def _errors(report: Report) -> list[Verdict]:
    found = []
    for comm in report.comms:
        for rank in comm.ranks:
            codes = [c for c in (rank.init_state, rank.async_error) if c not in FINE]
            if codes:
                said = CODES.get(codes[0], f"code {codes[0]}")
                whom = f" ({rank.proc})" if rank.proc else ""
                verdict = failed(
                    ERROR,
                    f"rank {rank.rank}{whom} of communicator {comm.id}: {said}",
                    rule="RAS-004",
                    measured={"rank": rank.rank, "code": codes[0]},
                )
                hosts = (rank.proc.node,) if rank.proc else ()
                found.append(replace(verdict, hosts=hosts))
    in_text = [comm.id for comm in report.comms if "ERROR" in comm.problems]
    if in_text and not found:
        ids = ", ".join(in_text[:4])
        found.append(failed(ERROR, f"communicator {ids} reports an error", rule="RAS-004"))
    return found


def _behind(polls: Sequence[Poll], span: float | None) -> list[Verdict]:
    found = []
    for comm in polls[-1].report.comms:
        late = _late(comm)
        if not late:
            continue
        if _moved(polls, comm.id):
            continue
        named = ", ".join(f"rank {r.rank}{f' ({r.proc})' if r.proc else ''}" for r in late[:4])
        most = max(rank.counts[comm.differing] for rank in comm.ranks if rank.counts)
        least = min(rank.counts[comm.differing] for rank in late)
        reason = (
            f"{named} launched {comm.differing} up to {least}, the others of communicator "
            f"{comm.id} up to {most}"
        )
        still = all(_late(c) for p in polls for c in p.report.comms if c.id == comm.id)
        if len(polls) >= 3 and span is not None and span >= STILL_S and still:
            verdict = failed(
                BEHIND,
                f"{reason}, and nothing moved for {span:.0f} s",
                rule="RAS-005",
                pid=late[0].proc.pid if late[0].proc else "",
                measured={"ranks_behind": [rank.rank for rank in late[:50]], "operation": most},
            )
            hosts = tuple(dict.fromkeys(r.proc.node for r in late if r.proc))
            found.append(replace(verdict, hosts=hosts))
        else:
            turn_on = f"three reports over {STILL_S:.0f} s tell whether it moves"
            found.append(replace(undecidable(reason, turn_on=turn_on), rule="RAS-005"))
    return found


def _late(comm: Comm) -> list[RankState]:
    """Ranks that launched less than the others."""
    name = comm.differing
    counts = [rank.counts[name] for rank in comm.ranks if name in rank.counts]
    if len(set(counts)) < 2:
        return []
    return [rank for rank in comm.ranks if rank.counts.get(name, max(counts)) < max(counts)
            and rank.rank >= 0]  # fmt: skip


def _states(polls: Sequence[Poll], span: float | None) -> list[Verdict]:
    odd = [status for status, _ in polls[-1].report.statuses if status != "RUNNING"]
    if not odd:
        return []
    reason = f"ranks of one communicator are in the states {', '.join(sorted(set(odd)))}"
    if span is None or span < 120 or len(polls) < 2:
        return [replace(undecidable(reason, turn_on="ask again after 120 s"), rule="RAS-006")]
    say = failed if any("INIT" in status for status in odd) else warned
    return [say(STATES, f"{reason}, for {span:.0f} s", rule="RAS-006")]


def _slow(polls: Sequence[Poll]) -> list[Verdict]:
    reports = [poll.report for poll in polls]
    worst = max((report.seconds or 0.0 for report in reports), default=0.0)
    always = len(polls) > 1 and all(report.timeouts for report in reports)
    if not always and worst <= SLOW_S:
        return []
    reason = f"gathering took up to {worst:.3g} s, with {reports[-1].timeouts} time-outs"
    return [warned(SLOW, reason, rule="RAS-008", measured={"gather_s": worst})]


def _too_few(polls: Sequence[Poll], world: int | None) -> list[Verdict]:
    counts = [poll.report.gpus or _largest(poll.report) for poll in polls]
    if world is None or not all(counts) or any((count or 0) >= world for count in counts):
        return []
    reason = f"the service knows {counts[-1]} of {world} ranks; it may answer for another job"
    return [replace(undecidable(reason, turn_on="compare its pids with the job's"), rule="RAS-009")]


def _largest(report: Report) -> int | None:
    return max((comm.size or 0 for comm in report.comms), default=0) or None


def _running(polls: Sequence[Poll], span: float | None) -> Verdict:
    """Nothing is wrong: does it move?"""
    last = polls[-1].report
    ranks = last.gpus or _largest(last) or 0
    alive = f"all {ranks} ranks answer, no error, NCCL {last.version}"
    moved = _moved(polls)
    if (
        len(polls) > 1
        and moved is None
        and any(comm.differing for poll in polls[:-1] for comm in poll.report.comms)
    ):
        moved = True  # they were apart, and are together again
    measured: dict[str, object] = {"ranks": ranks, "reports": len(polls)}
    if moved:
        reason = f"{alive}; collectives were launched between two reports"
        return replace(passed(reason, measured=measured), rule="RAS-011")
    if moved is False and span is not None and span >= STILL_S:
        reason = f"{alive}, and none launched a collective for {span:.0f} s"
        return warned(NO_PROGRESS, reason, rule="RAS-007", measured=measured)
    if len(polls) > 1 and moved is False:
        why = f"{alive}; no new collective between reports {span or 0:.3g} s apart"
        turn_on = f"a window of {STILL_S:.0f} s (window_s) tells"
    elif len(polls) > 1:
        why = f"{alive}; whether it moves, this form of the report does not tell"
        turn_on = "NCCL 2.28.7 and newer count in JSON (ncclras -v -f json)"
    else:
        why, turn_on = f"{alive}; one report does not tell whether it moves", "ask a second time"
    return replace(undecidable(why, turn_on=turn_on), rule="RAS-011", measured=measured)

"""Rules on PyTorch's watchdog: LOG-048 and LOG-049."""

from __future__ import annotations

from collections import Counter
from typing import Final

from commcheck.nccl import causes_errors
from commcheck.nccl.case import Case
from commcheck.nccl.facts import Progress
from commcheck.nccl.rules_errors import first_cause
from commcheck.nccl.rules_init import some
from commcheck.nccl.ruling import Found, Rule, Ruling, other, right, unknown, wrong

_WATCHDOG_LINES: Final = "the lines of PyTorch's watchdog of every rank (stderr)"


def _waits(case: Case) -> tuple[set[tuple[int, str]], str]:
    """The different (sequence number, operation) pairs at the time-out, and the usual one."""
    counts = Counter((t.seq, t.op) for t in case.job.timeouts)
    usual = counts.most_common(1)[0][0] if counts else (0, "")
    return set(counts), f"{usual[1]} number {usual[0]}"


def _host(case: Case, rank: int) -> str | None:
    comm = case.world
    if comm is not None and rank in comm.members:
        return case.rank_host(comm, rank)
    told = next((p for p in case.procs if p.global_rank == rank and p.host), None)
    return case.machine(told.host) if told else case.job.rank_hosts.get(rank)


def stragglers(case: Case) -> dict[int, str]:
    """Ranks that did not reach the collective the others wait in, and why they are named."""
    waiting = {t.rank for t in case.job.timeouts}
    latest: dict[int, Progress] = {}
    for progress in case.job.progress:
        latest[progress.rank] = progress
    found = {
        rank: f"last enqueued {p.enqueued}, last completed {p.completed}"
        for rank, p in latest.items()
        if rank not in waiting and p.enqueued < min(t.seq for t in case.job.timeouts)
    }
    if found:
        return found
    if latest and len({p.completed for p in latest.values()}) > 1:
        least = min(p.completed for p in latest.values())
        return {r: f"last completed {least}" for r, p in latest.items() if p.completed == least}
    comm = case.world
    nranks = comm.nranks if comm else 0
    silent = [r for r in range(nranks) if r not in waiting and r not in latest]
    if waiting and 0 < len(silent) <= max(1, nranks // 4):
        return dict.fromkeys(silent, "no watchdog line at all")
    return {}


def _timeout(case: Case) -> Ruling:
    if not case.job.timeouts:
        return right() if case.job.progress else other("no line of PyTorch's watchdog")
    waits, usual = _waits(case)
    if len(waits) > 1:
        return other("ranks wait in different collectives: see LOG-049")
    root = first_cause(case)
    if root is not None:
        return other("the watchdogs follow from an earlier error of NCCL")
    late = stragglers(case)
    ranks = sorted({t.rank for t in case.job.timeouts})
    hosts = tuple(dict.fromkeys(h for r in late if (h := _host(case, r))))
    named = "; ".join(
        f"rank {rank}{f' ({_host(case, rank)})' if _host(case, rank) else ''} did not: {why}"
        for rank, why in sorted(late.items())[:6]
    )
    places = [p.at for p in case.job.progress if p.rank in late] + [
        t.at for t in case.job.timeouts[:3]
    ]
    pids = [p.pid for p in case.procs if case.world and set(late) & p.comms.get(case.world, set())]
    return wrong(
        Found(
            rule="LOG-048",
            cause=causes_errors.TIMEOUT,
            reason=f"ranks {some(ranks)} waited for {usual} until the watchdog ended them; "
            + (named or "no rank is known to be late"),
            hosts=hosts,
            evidence=tuple(case.where(places)),
            measured={
                "waiting_ranks": len(ranks),
                "late_ranks": sorted(late)[:50],
                "timeout_ms": case.job.timeouts[0].timeout_ms,
            },
            places={"pid": pids[0] if pids else ""},
        )
    )


def _desync(case: Case) -> Ruling:
    if not case.job.timeouts:
        return right() if case.job.progress else other("no line of PyTorch's watchdog")
    waits, _ = _waits(case)
    if len(waits) < 2:
        return right("all ranks wait in the same collective")
    if len({p.group for p in case.job.progress}) > 1:
        return unknown(
            "time-outs of several process groups: their numbers cannot be compared",
            _WATCHDOG_LINES,
        )
    said = ", ".join(f"{op} number {seq}" for seq, op in sorted(waits)[:4])
    ranks = sorted({t.rank for t in case.job.timeouts})
    hosts = tuple(dict.fromkeys(h for r in ranks[:200] if (h := _host(case, r))))
    return wrong(
        Found(
            rule="LOG-049",
            cause=causes_errors.DESYNC,
            reason=f"ranks wait in different collectives: {said}",
            hosts=hosts,
            evidence=tuple(case.where(t.at for t in case.job.timeouts)),
            measured={"waiting_in": [f"{op} {seq}" for seq, op in sorted(waits)[:20]]},
        )
    )


RULES: Final = (
    Rule("LOG-048", "collectives end in time", _timeout),
    Rule("LOG-049", "ranks stay in step", _desync),
)

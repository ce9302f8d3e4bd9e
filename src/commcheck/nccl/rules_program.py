"""Rules on PyTorch's watchdog: LOG-048 and LOG-049.

Sequence numbers count within a process group, so only those of one group are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from commcheck.nccl import causes_errors
from commcheck.nccl.case import Case
from commcheck.nccl.facts import Ended, Progress, Timeout
from commcheck.nccl.flight_groups import some
from commcheck.nccl.rules_errors import first_cause
from commcheck.nccl.ruling import Found, Rule, Ruling, other, right, unknown, wrong

_WATCHDOG_LINES: Final = "the lines of PyTorch's watchdog of every rank (stderr)"
_DEFAULT: Final = "default_pg"
"""PyTorch's name of the group of all ranks."""

Wait = tuple[int, str]
"""A sequence number and an operation."""


def _waits(case: Case) -> dict[str, dict[Wait, list[Timeout]]]:
    """The collectives that did not end, by process group, in order; "" where it is not told."""
    exact = {(p.rank, p.work): p.group for p in case.progress if p.work is not None}
    of_rank: dict[int, set[str]] = {}
    for progress in case.progress:
        if progress.work is not None:
            of_rank.setdefault(progress.rank, set()).add(progress.group)
    found: dict[str, dict[Wait, list[Timeout]]] = {}
    for each in case.timeouts:
        only = of_rank.get(each.rank, set())
        group = each.group or exact.get((each.rank, each.seq)) or ""
        group = group or (next(iter(only)) if len(only) == 1 else "")
        found.setdefault(group, {}).setdefault((each.seq, each.op), []).append(each)
    found = {group: _of_last_attempt(waits) for group, waits in found.items()}
    for wait, members in list(found.get("", {}).items()):  # of ranks whose second line is lost
        named = [group for group, waits in found.items() if group and wait in waits]
        if len(named) == 1:
            found[named[0]][wait] += members
            del found[""][wait]
    return {group: waits for group, waits in found.items() if waits}


def _of_last_attempt(waits: dict[Wait, list[Timeout]]) -> dict[Wait, list[Timeout]]:
    """Without what was waited for before a restart: a rank hangs in one collective of a group."""
    by_rank: dict[int, dict[Wait, Timeout]] = {}
    for wait, members in waits.items():
        for each in members:
            by_rank.setdefault(each.rank, {})[wait] = each
    last = {max(told, key=lambda wait: told[wait].at) for told in by_rank.values() if len(told) > 1}
    return {wait: members for wait, members in waits.items() if wait in last or not last}


def _is_one(case: Case, group: str) -> bool:
    """Whether all that wait without a group's name must be of one group."""
    return bool(group) or len(case.comms) == 1


def _spans_job(case: Case, group: str) -> bool:
    """Whether the group has all ranks of the job."""
    return _DEFAULT in group or (not group and len(case.comms) == 1)


def _of(group: str) -> str:
    return f" of group {group}" if group and _DEFAULT not in group else ""


def host_of_rank(case: Case, rank: int) -> str | None:
    """The machine of a rank as PyTorch counts them, where anything tells it."""
    comm = case.world
    if comm is not None and rank in comm.members:
        return case.rank_host(comm, rank)
    told = next((p for p in case.procs if p.global_rank == rank and p.host), None)
    return case.machine(told.host) if told else case.job.rank_hosts.get(rank)


def stragglers(case: Case, group: str, waits: Mapping[Wait, Iterable[Timeout]]) -> dict[int, str]:
    """Ranks that did not reach the collective the others wait in, and why they are named."""
    waiting = {t.rank for members in waits.values() for t in members}
    told = case.progress
    if not group and len({p.group for p in told}) > 1:
        return {}  # of which group these numbers are is not known
    gone = {(t.rank, t.seq) for t in case.timeouts} - {
        (t.rank, t.seq) for members in waits.values() for t in members
    }
    latest: dict[int, Progress] = {
        p.rank: p for p in told if (p.group == group or not group) and (p.rank, p.work) not in gone
    }
    found = {
        rank: f"last enqueued {p.enqueued}, last completed {p.completed}"
        for rank, p in latest.items()
        if rank not in waiting and p.enqueued < min(seq for seq, _ in waits)
    }
    if found:
        return found
    if latest and len({p.completed for p in latest.values()}) > 1:
        least = min(p.completed for p in latest.values())
        return {r: f"last completed {least}" for r, p in latest.items() if p.completed == least}
    comm = case.world
    nranks = comm.nranks if comm and _spans_job(case, group) else 0
    silent = [r for r in range(nranks) if r not in waiting and r not in latest]
    if waiting and 0 < len(silent) <= max(1, nranks // 4):
        return dict.fromkeys(silent, "no watchdog line at all")
    return {}


def _said(group: str, waits: Mapping[Wait, Iterable[Timeout]]) -> str:
    """``ranks 0, 1 waited for ALLREDUCE number 7 of group ...``."""
    return "; ".join(
        f"{some(sorted({t.rank for t in members}))} waited for {op} number {seq}{_of(group)}"
        for (seq, op), members in list(waits.items())[:3]
    )


def _timeout(case: Case) -> Ruling:
    if not case.timeouts:
        if stuck := [each for each in case.torch_ended if each.stuck]:
            return _hung(case, stuck)
        return right() if case.progress else other("no line of PyTorch's watchdog")
    groups = _waits(case)
    if any(len(waits) > 1 and _is_one(case, group) for group, waits in groups.items()):
        return other("ranks wait in different collectives: see LOG-049")
    root = first_cause(case)
    if root is not None:
        return other("the watchdogs follow from an earlier error of NCCL")
    late = {
        rank: why
        for group, waits in groups.items()
        for rank, why in stragglers(case, group, waits).items()
    }
    hosts = tuple(dict.fromkeys(h for r in late if (h := host_of_rank(case, r))))
    named = "; ".join(
        f"rank {rank}{f' ({host})' if (host := host_of_rank(case, rank)) else ''} did not: {why}"
        for rank, why in sorted(late.items())[:6]
    )
    said = "; ".join(_said(group, waits) for group, waits in list(groups.items())[:3])
    if len(groups.get("", ())) > 1:
        named = "which process groups these are is not in the log, nor who is late"
    places = [p.at for p in case.progress if p.rank in late] + [t.at for t in case.timeouts[:3]]
    pids = [p.pid for p in case.procs if case.world and set(late) & p.comms.get(case.world, set())]
    return wrong(
        Found(
            rule="LOG-048",
            cause=causes_errors.TIMEOUT,
            reason=f"{said} until the watchdog ended them; "
            + (named or "no rank is known to be late"),
            hosts=hosts,
            evidence=tuple(case.where(places)),
            measured={
                "waiting_ranks": len({t.rank for t in case.timeouts}),
                "late_ranks": sorted(late)[:50],
                "timeout_ms": case.timeouts[0].timeout_ms,
            },
            places={"pid": pids[0] if pids else ""},
        )
    )


def _hung(case: Case, stuck: Sequence[Ended]) -> Ruling:
    """The watchdog of a process did not come round any more: what it calls itself hangs."""
    if first_cause(case) is not None:
        return other("the watchdogs follow from an earlier error of NCCL")
    ranks = sorted({each.rank for each in stuck if each.rank is not None})
    who = some(ranks) if ranks else "a rank"
    return wrong(
        Found(
            rule="LOG-048",
            cause=causes_errors.TIMEOUT,
            reason=f"PyTorch's watchdog itself hung on {who}: a call of CUDA or NCCL does not "
            "return, or another thread holds the GIL in one",
            hosts=tuple(dict.fromkeys(h for r in ranks if (h := host_of_rank(case, r)))),
            evidence=tuple(case.where(each.at for each in stuck)),
            measured={"stuck_ranks": ranks[:50]},
        )
    )


def _desync(case: Case) -> Ruling:
    if not case.timeouts:
        return right() if case.progress else other("no line of PyTorch's watchdog")
    groups = _waits(case)
    apart = {
        group: waits for group, waits in groups.items() if len(waits) > 1 and _is_one(case, group)
    }
    if not apart and len(groups.get("", ())) > 1:
        return unknown(
            "ranks wait in different collectives, and of which process groups is not told",
            _WATCHDOG_LINES,
        )
    if not apart:
        return right("the ranks of each group wait in the same collective")
    group, waits = next(iter(apart.items()))
    said = ", ".join(f"{op} number {seq}" for seq, op in sorted(waits)[:4])
    members = [t for each in waits.values() for t in each]
    ranks = sorted({t.rank for t in members})
    hosts = tuple(dict.fromkeys(h for r in ranks[:200] if (h := host_of_rank(case, r))))
    return wrong(
        Found(
            rule="LOG-049",
            cause=causes_errors.DESYNC,
            reason=f"ranks{_of(group)} wait in different collectives: {said}",
            hosts=hosts,
            evidence=tuple(case.where(t.at for t in members)),
            measured={"waiting_in": [f"{op} {seq}" for seq, op in sorted(waits)[:20]]},
        )
    )


RULES: Final = (
    Rule("LOG-048", "collectives end in time", _timeout),
    Rule("LOG-049", "ranks stay in step", _desync),
)

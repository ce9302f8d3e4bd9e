"""Rules on init: ranks that never came, init that did not end or was slow, what they agreed on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Final

from commcheck.model import Status
from commcheck.nccl import causes, causes_errors
from commcheck.nccl.case import Case
from commcheck.nccl.facts import Comm, Member
from commcheck.nccl.flight_groups import some
from commcheck.nccl.ruling import (
    INFO_EVERYWHERE,
    NAME_MACHINES,
    Found,
    Rule,
    Ruling,
    other,
    right,
    unknown,
    wrong,
)
from commcheck.nccl.topology import figure
from commcheck.report.counts import many

STALE_S: Final = 120
"""A file that grew within this time may still be starting."""

SLOW_S: Final = 60.0
SLOW_TIMES: Final = 5.0


def _missing(case: Case) -> Ruling:
    comm = case.world
    if comm is None:
        return unknown("no line of a communicator", INFO_EVERYWHERE)
    absent = [rank for rank in range(comm.nranks) if rank not in comm.members]
    if not absent:
        return right(f"all {comm.nranks} ranks seen")
    if case.uncountable:
        return unknown(case.uncountable, case.turn_on_whole)
    if any(member.complete for member in comm.members.values()):
        # Init is collective: where one rank completed all had come. These only log elsewhere.
        return unknown(
            f"init completed, but the input lacks {many(len(absent), 'rank')}",
            case.turn_on_whole,
        )
    if _growing(case):
        return unknown("the log is still growing", "look again in two minutes")
    where = _neighbours(case, comm, absent)
    hosts = tuple(dict.fromkeys(host for host, _ in where.values() if host))
    named = ", ".join(
        f"rank {rank} ({host}, local rank {local})" if host else f"rank {rank}"
        for rank, (host, local) in list(where.items())[:8]
    )
    return wrong(
        Found(
            rule="LOG-013",
            cause=causes.RANKS_MISSING,
            reason=f"{len(absent)} of {comm.nranks} ranks never arrived: {named}"
            + (" ..." if len(absent) > 8 else ""),
            hosts=hosts,
            evidence=tuple(case.where(m.at for m in comm.members.values())),
            measured={"missing_ranks": absent[:200], "nranks": comm.nranks},
            figures=(figure(case, comm, None),),
        )
    )


def _neighbours(case: Case, comm: Comm, absent: list[int]) -> dict[int, tuple[str, int]]:
    """Host and local index of missing ranks, where the ranks before and after share a host."""
    found = {}
    for rank in absent[:64]:
        below = max((r for r in comm.members if r < rank), default=None)
        above = min((r for r in comm.members if r > rank), default=None)
        host = ""
        if below is not None and above is not None:
            low, high = case.rank_host(comm, below), case.rank_host(comm, above)
            host = low if low and low == high else ""
        local = 0
        if host:
            first = min(r for r in comm.members if case.rank_host(comm, r) == host)
            local = rank - first
        found[rank] = (host, local)
    return found


def _growing(case: Case) -> bool:
    mine = {file for proc in case.procs for file in proc.files}
    ages = case.job.file_age_s.items()
    return any(age < STALE_S for file, age in ages if file in mine or not mine)


def _stuck(case: Case) -> Ruling:
    world = _world_stuck(case)
    groups = [
        (comm, stuck) for comm in case.comms if comm is not case.world and (stuck := _waiting(comm))
    ]
    if not groups or world.state == "wrong":
        return world
    comm, stuck = groups[0]
    absent = [rank for rank in range(comm.nranks) if rank not in comm.members]
    if (case.uncountable if absent else case.damaged) or _growing(case):
        why = f"init of {many(len(groups), 'communicator')} beside the largest has no end yet"
        return unknown(why, f"look again in two minutes; {case.turn_on_whole}", doubt=True)
    if stopped := _stopped(case, stuck):
        return stopped
    more = f"; {many(len(groups) - 1, 'more communicator')} likewise" if len(groups) > 1 else ""
    first = stuck[0][1].proc
    return wrong(
        Found(
            rule="LOG-014",
            cause=causes.INIT_STUCK,
            reason=f"{some([rank for rank, _ in stuck])} of a communicator of {comm.nranks}, which "
            "is not the largest, began init and did not end it"
            + (f", {some(absent)} did not come" if absent else "")
            + f"; the last line of {first.label} is at {case.job.where(first.last)}"
            f"{_refused(case)}{more}",
            hosts=tuple(dict.fromkeys(case.machine(m.proc.host) for _, m in stuck)),
            evidence=tuple(case.where(m.at for _, m in stuck)),
            measured={"stuck_communicators": len(groups)},
            places={"pid": first.pid},
        )
    )


def _stopped(case: Case, stuck: Sequence[tuple[int, Member]]) -> Ruling | None:
    """Where the file or an error ends what is shown of init."""
    if case.job.stats.cut_files:
        return unknown("a file ends in the middle of a line", "read the whole file")
    errors = {error.proc for error in case.errors if case.ended(error)}
    if any(member.proc in errors for _, member in stuck):
        return other("init ended in an error that another rule names")
    return None


def _refused(case: Case) -> str:
    """Peers to which connections were tried again and again."""
    told = [f"{peer} ({why})" for peer, why in list(case.job.refused.items())[:3]]
    return f"; tried again: connections to {', '.join(told)}" if told else ""


def _waiting(comm: Comm) -> list[tuple[int, Member]]:
    """Ranks that began init and neither ended it nor gave the communicator up."""
    members = sorted(comm.members.items())
    return [(rank, m) for rank, m in members if m.start and not m.complete and not m.gone]


def _world_stuck(case: Case) -> Ruling:
    comm = case.world
    if comm is None:
        return unknown("no line of a communicator", INFO_EVERYWHERE)
    begun = [(rank, m) for rank, m in comm.members.items() if m.start]
    if not begun:
        return other("this version prints no START line (before 2.18)")
    stuck = [(rank, m) for rank, m in begun if not m.complete]
    if not stuck:
        return right()
    if case.uncountable:
        return unknown(case.uncountable, case.turn_on_whole)
    if _growing(case):
        return unknown("the log is still growing", "look again in two minutes")
    stopped = _stopped(case, stuck)
    if stopped and stopped.state == "unknown":
        return stopped
    if len(comm.members) < comm.nranks:
        return other("ranks are missing: that the others wait is its consequence (LOG-013)")
    if len(comm.sizes) > 1:
        return other(
            "ranks do not agree how many they are: that they wait follows from it (LOG-015)"
        )
    if stopped or case.networks.keys() > {case.network}:
        return stopped or other("the ranks use different networks: see LOG-006")
    few = stuck if len(stuck) * 2 <= len(comm.members) else stuck[:8]
    hosts = tuple(dict.fromkeys(case.machine(m.proc.host) for _, m in few))
    ranks = [rank for rank, _ in stuck]
    first = few[0][1].proc
    return wrong(
        Found(
            rule="LOG-014",
            cause=causes.INIT_STUCK,
            reason=f"{len(stuck)} of {len(comm.members)} ranks began init and did not end it: "
            f"{some(sorted(ranks))}; the last line of rank {few[0][0]} is at "
            f"{case.job.where(first.last)}{_refused(case)}",
            hosts=hosts,
            evidence=tuple(case.where(m.proc.last for _, m in few)),
            measured={"stuck_ranks": sorted(ranks)[:200]},
            figures=(figure(case, comm, None),),
            places={"pid": first.pid},
        )
    )


def _channels_of(comm: Comm) -> Counter[int]:
    """Channel counts that the members declare."""
    return Counter(m.channels for m in comm.members.values() if m.channels is not None)


def _channels(case: Case) -> Ruling:
    comm = case.world
    counts = _channels_of(comm) if comm else None
    if not counts or comm is None:
        return unknown("no 'coll channels' line", INFO_EVERYWHERE)
    if len(counts) == 1:
        return right()
    usual = counts.most_common(1)[0][0]
    odd = [m for m in comm.members.values() if m.channels not in (None, usual)]
    hosts = tuple(dict.fromkeys(case.machine(m.proc.host) for m in odd))
    said = ", ".join(f"{n} on {many(times, 'rank')}" for n, times in sorted(counts.items()))
    return wrong(
        Found(
            rule="LOG-031",
            cause=causes.CHANNELS_DIFFER,
            reason=f"channel counts differ inside one communicator: {said}",
            hosts=hosts,
            evidence=tuple(case.where(m.at for m in odd)),
        )
    )


def _nodes(case: Case) -> Ruling:
    comm = case.world
    if comm is None or comm.nodes is None:
        return unknown("no 'nNodes' line (2.20 and newer)", INFO_EVERYWHERE)
    if comm.mnnvl:
        return other("MNNVL counts NVLink cliques, not hosts")
    if len(comm.members) < comm.nranks:
        return unknown(f"{len(comm.members)} of {comm.nranks} ranks seen", case.turn_on_whole)
    machines = len(case.hosts)
    if comm.nodes == machines:
        return right()
    if case.unclear_hosts:
        return unknown(case.unclear_hosts, NAME_MACHINES)
    more = comm.nodes > machines
    return wrong(
        Found(
            rule="LOG-046",
            cause=causes_errors.NODES,
            reason=f"NCCL counts {many(comm.nodes, 'node')}, the ranks run on "
            f"{many(machines, 'machine')}"
            + (": containers of one machine look like several" if more else ": identities cloned"),
            hosts=case.hosts,
            evidence=tuple(case.where([comm.nodes_at])),
            measured={"nodes": comm.nodes, "machines": machines},
        )
    )


def _slow(case: Case) -> Ruling:
    comm = case.world
    timed = {r: m for r, m in comm.members.items() if m.init_s is not None} if comm else {}
    if not timed:
        return unknown("no 'Init timings' line (2.22 and newer)", INFO_EVERYWHERE)
    middle = median(m.init_s or 0.0 for m in timed.values())
    rank, worst = max(timed.items(), key=lambda each: each[1].init_s or 0.0)
    slowest = worst.init_s or 0.0
    if slowest <= SLOW_S and not (slowest > SLOW_TIMES * middle and slowest > 10):
        return right(f"init took {middle:.1f} s")
    return wrong(
        Found(
            rule="LOG-047",
            cause=causes_errors.SLOW_INIT,
            status=Status.WARN,
            reason=f"init took {slowest:.1f} s on rank {rank}, {middle:.1f} s on the middle one "
            f"({worst.init_shares})",
            hosts=(case.machine(worst.proc.host),),
            evidence=tuple(case.where([worst.at])),
            measured={"init_s": slowest, "init_median_s": middle},
        )
    )


RULES: Final = (
    Rule("LOG-013", "all ranks arrived", _missing),
    Rule("LOG-014", "init came to its end", _stuck),
    Rule("LOG-031", "equal channel counts", _channels),
    Rule("LOG-046", "NCCL counts the hosts rightly", _nodes),
    Rule("LOG-047", "init is quick", _slow),
)

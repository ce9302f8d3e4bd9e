"""Rules on where ranks sit and how they are connected: LOG-018 to LOG-024."""

from __future__ import annotations

from typing import Final

from commcheck.model import Status
from commcheck.nccl import causes
from commcheck.nccl.case import Case
from commcheck.nccl.facts import Comm, Process
from commcheck.nccl.ruling import (
    INFO_EVERYWHERE,
    NAME_MACHINES,
    SUBSYSTEMS,
    Found,
    Rule,
    Ruling,
    other,
    right,
    unknown,
    wrong,
)
from commcheck.nccl.topology import figure, rings
from commcheck.report.counts import many
from commcheck.report.ranges import fold_hosts, natural

UNEVEN: Final = 1.5


def _same_host_net(case: Case) -> Ruling:
    comm = case.world
    if comm is None or not comm.members:
        return unknown("no line of a communicator", INFO_EVERYWHERE)
    pairs = _pairs(case, comm, comm.net_pairs)
    if not pairs:
        if not comm.via:
            return unknown("no channel was printed", INFO_EVERYWHERE)
        behind = _behind_one_door(case, comm)
        return unknown(behind, NAME_MACHINES) if behind else right()
    if case.unclear_hosts:
        return unknown(case.unclear_hosts, NAME_MACHINES)
    host = next(iter(pairs))
    told = case.expected(host)
    procs = [m.proc for m in comm.members.values() if case.machine(m.proc.host) in pairs]
    refused = _switched_off(procs)
    if told.nvlink is False and not refused:
        return other("PCIe-only hosts: NCCL prefers the NIC where both GPUs reach one")
    count = sum(len(each) for each in pairs.values())
    several = len({proc.host for proc in procs}) > len(pairs)  # containers of one machine
    sure = bool(refused) or several or told.nvlink is True
    return wrong(
        Found(
            rule="LOG-018",
            cause=causes.SAME_HOST_NET,
            status=Status.FAIL if sure else Status.WARN,
            reason=f"over the network go {many(count, 'pair')} of ranks that share a host, on "
            f"{fold_hosts(pairs)}" + (f": {', '.join(refused)}" if refused else ""),
            hosts=tuple(pairs),
            evidence=tuple(case.where(at for each in pairs.values() for at in each)),
            measured={"same_host_pairs_over_net": count},
        )
    )


def _behind_one_door(case: Case, comm: Comm) -> str:
    """Two hosts with one address that talk over the network, or empty: are they one machine?"""
    for pair in comm.net_pairs:
        names = case.rank_host(comm, pair >> 24), case.rank_host(comm, pair & 0xFFFFFF)
        here, there = (case.expected(name or "") for name in names)
        if here.door and here.door == there.door:
            both = " and ".join(sorted((here.machine, there.machine), key=natural))
            return (
                f"{both} answer at one address, {here.door}: containers of one machine, or "
                "machines behind one that forwards"
            )
    return ""


def _switched_off(procs: list[Process]) -> list[str]:
    """Settings in the log's echo that take the ways inside a host away."""
    found = set()
    for proc in procs:
        env = proc.env
        if env.get("NCCL_P2P_DISABLE") == "1" or env.get("NCCL_P2P_LEVEL") in ("LOC", "0"):
            # Up to 2.22 the level is also the only echo of NCCL_P2P_DISABLE=1.
            found.add("NCCL_P2P_LEVEL is LOC (or NCCL_P2P_DISABLE=1)")
        if env.get("NCCL_SHM_DISABLE") == "1":
            found.add("NCCL_SHM_DISABLE=1")
    return sorted(found)


def _pairs(
    case: Case, comm: Comm, pairs: dict[int, tuple[int, int]]
) -> dict[str, list[tuple[int, int]]]:
    """Pairs whose two ranks run on one machine, by machine."""
    found: dict[str, list[tuple[int, int]]] = {}
    for pair, at in pairs.items():
        here = case.rank_host(comm, pair >> 24)
        if here is not None and here == case.rank_host(comm, pair & 0xFFFFFF):
            found.setdefault(here, []).append(at)
    return found


def _shm(case: Case) -> Ruling:
    comm = case.world
    if comm is None or not comm.via:
        return unknown("no channel was printed", INFO_EVERYWHERE)
    pairs = _pairs(case, comm, comm.shm_pairs)
    if not pairs:
        return right()
    linked = {host: at for host, at in pairs.items() if case.expected(host).nvlink}
    if not linked:
        return other("shared memory is used; no inventory says that these GPUs have NVLink")
    return wrong(
        Found(
            rule="LOG-019",
            cause=causes.SAME_HOST_SHM,
            reason=f"GPUs with NVLink talk over host memory on {fold_hosts(linked)}",
            hosts=tuple(linked),
            evidence=tuple(case.where(at for each in linked.values() for at in each)),
        )
    )


def _indirect(case: Case) -> Ruling:
    comm = case.world
    if comm is None or not comm.via:
        return unknown("no channel was printed", INFO_EVERYWHERE)
    pairs = _pairs(case, comm, comm.indirect)
    linked = {host: at for host, at in pairs.items() if case.expected(host).nvlink}
    if not linked:
        return right()
    return wrong(
        Found(
            rule="LOG-020",
            cause=causes.P2P_REFUSED,
            status=Status.WARN,
            reason=f"GPUs reach each other only through a third one on {fold_hosts(linked)}",
            hosts=tuple(linked),
            evidence=tuple(case.where(at for each in linked.values() for at in each)),
        )
    )


def _p2p(case: Case) -> Ruling:
    refused = [proc for proc in case.procs if proc.p2p_refused]
    if not refused:
        return right() if case.saw("INIT") else unknown("no INFO line", INFO_EVERYWHERE)
    bad = [proc for proc in refused if case.expected(proc.host).nvlink]
    if not bad:
        return other("normal on boards without NVLink; no inventory says otherwise")
    hosts = tuple(dict.fromkeys(case.machine(proc.host) for proc in bad))
    return wrong(
        Found(
            rule="LOG-022",
            cause=causes.P2P_REFUSED,
            reason=f"P2P is disabled between connected GPUs of {fold_hosts(hosts)}",
            hosts=hosts,
            evidence=tuple(case.where(proc.p2p_refused for proc in bad)),
        )
    )


def _zigzag(case: Case) -> Ruling:
    comm = case.world
    if comm is None:
        return unknown("no line of a communicator", INFO_EVERYWHERE)
    if case.unclear_hosts:
        return unknown(case.unclear_hosts, NAME_MACHINES)
    known = rings(case, comm)
    if not known:
        if case.domains(comm) is None:
            return unknown("hosts of an MNNVL rack: cliques are not in the log", SUBSYSTEMS)
        why = (
            "the ring listing is cut (20 ranks up to 2.22)" if comm.listing_cut else "no whole ring"
        )
        return unknown(why, f"{SUBSYSTEMS} on all ranks prints each rank's ring neighbours")
    worst = max(known, key=lambda ring: ring.crossings - ring.minimum)
    excess = worst.crossings - worst.minimum
    if excess <= 0:
        return right(
            f"{many(len(known), 'ring')}, {many(worst.crossings, 'host crossing')} each, the least "
            "possible"
        )
    bad = [ring for ring in known if ring.crossings > ring.minimum]
    return wrong(
        Found(
            rule="LOG-023",
            cause=causes.ZIGZAG,
            status=Status.FAIL if excess >= (case.domains(comm) or 1) else Status.WARN,
            reason=f"{len(bad)} of {many(len(known), 'ring')}, up to {worst.crossings} crossings "
            f"between hosts, want {worst.minimum}: ranks are not placed host by host",
            hosts=case.hosts,
            evidence=tuple(case.where([comm.listing_at])),
            measured={"crossings": worst.crossings, "crossings_minimum": worst.minimum},
            figures=(figure(case, comm, worst),),
        )
    )


def _half_told(case: Case, comm: Comm) -> str:
    """Why not every channel was printed, or empty: what is cut in the middle looks uneven."""
    if case.job.stats.cut_files:
        return "a file ends in the middle of a line"
    done = sum(member.complete for member in comm.members.values())
    if done < comm.nranks:
        return f"{done} of {comm.nranks} ranks are known to have completed init"
    alone = sum(receives < 0 for _, receives in comm.rails.values())
    return f"of {many(alone, 'channel')} only the sender's line is there" if alone else ""


def _rails(case: Case) -> Ruling:
    if not case.network_in_use:
        return other("the network is not used by this job (one host, or one NVLink domain)")
    comm = case.world
    if case.uncountable:
        return unknown(case.uncountable, case.turn_on_whole)
    if comm is None or not comm.nic_use:
        return unknown("no sending channel over the network was printed", INFO_EVERYWHERE)
    if why := _half_told(case, comm):
        return unknown(why, "read the whole file, once the job trains")
    found = []
    judged = False
    for host in case.hosts:
        members = [m for m in comm.members.values() if case.machine(m.proc.host) == host]
        nics = max((m.proc.nics or () for m in members), key=len)
        if case.network == "Socket" or not nics:
            continue
        names = {m.proc.host for m in members}
        counts = {
            nic.name: sum(
                n for key, n in comm.nic_use.items() if key[0] in names and key[2] == nic.index
            )
            for nic in nics
        }
        seen = counts
        rails = {rail.partition("/")[0] for rail in case.expected(host).nics or ()}
        if rails:  # a NIC that is none of them, for storage, has nothing to carry
            counts = {name: n for name, n in counts.items() if rails & set(name.split("+"))}
        else:  # nor has one of another link type, for the host itself
            busy = max(nics, key=lambda nic: counts[nic.name]).link
            counts = {nic.name: counts[nic.name] for nic in nics if nic.link == busy}
        if len(members) < len(counts):
            continue
        judged = True
        idle = [name for name, n in counts.items() if n == 0]
        strange = [name for name, n in seen.items() if n and rails and name not in counts]
        even = not idle and max(counts.values(), default=0) <= UNEVEN * min(
            counts.values(), default=0
        )
        if not strange and (not counts or even):
            continue
        sure = bool(idle and rails)
        told = ", ".join(f"{name} {n}" for name, n in counts.items())
        told += f"; and {', '.join(strange)}, declared as no rail, carry some" if strange else ""
        found.append(
            Found(
                rule="LOG-024",
                cause=causes.UNEVEN_RAILS,
                status=Status.FAIL if sure else Status.WARN,
                reason=f"NICs of {host} carry uneven numbers of channels: {told}",
                hosts=(host,),
                evidence=tuple(case.where(m.proc.nics_at for m in members)),
                measured={"send_channels_by_nic": seen},
            )
        )
    if not judged:
        return other("fewer ranks than NICs on each host, or no list of NICs")
    return wrong(*found[:20])


RULES: Final = (
    Rule("LOG-018", "no network inside a host", _same_host_net),
    Rule("LOG-019", "no host memory where there is NVLink", _shm),
    Rule("LOG-020", "no detours over a third GPU", _indirect),
    Rule("LOG-022", "GPUs reach each other", _p2p),
    Rule("LOG-023", "rings cross hosts as rarely as possible", _zigzag),
    Rule("LOG-024", "all NICs carry channels", _rails),
)

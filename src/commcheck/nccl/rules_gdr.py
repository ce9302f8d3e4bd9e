"""Rules on GPU Direct RDMA and rails: LOG-025 to LOG-030."""

from __future__ import annotations

from typing import Final

from commcheck.model import Cause, Status
from commcheck.nccl import causes, causes_plugins
from commcheck.nccl.case import OVER_VERBS, Case, lacks_gdr
from commcheck.nccl.facts import Process
from commcheck.nccl.rules_network import machines_of, not_over_network
from commcheck.nccl.ruling import (
    INFO_EVERYWHERE,
    SUBSYSTEMS,
    Found,
    Rule,
    Ruling,
    other,
    right,
    unknown,
    wrong,
)
from commcheck.report.counts import many
from commcheck.report.ranges import fold_hosts


def _gdr_gate(case: Case, *, differ: bool = False) -> Ruling | None:
    """Why GPU Direct is not judged. ``differ``: only whether the ranks are alike is asked."""
    if gated := not_over_network(case):
        return gated
    # NCCL itself prints the channels: behind a plugin that shows GPU Direct on one, none lacks it.
    shows = case.libfabric or (case.network or "").startswith(OVER_VERBS) or (differ and _any(case))
    if case.plugin and not shows:
        return unknown(
            f"{case.network} is a plugin: its lines need not show GPU Direct",
            "ask the plugin's log",
        )
    if len(case.networks) > 1:
        return other("the ranks use different networks: see LOG-006")
    if case.network == "Socket" or any(proc.ofi_over_tcp for proc in case.world_procs):
        return other("the network is TCP: see LOG-001")
    if case.libfabric and not differ and not any(case.expected(p.host).gdr for p in case.procs):
        # In EC2 only the P series has it, from p4d on (aws/aws-ofi-nccl#547).
        return unknown(
            "whether these instances have GPU Direct RDMA is not in the log",
            "declare commcheck_gdr: true where they have (EC2: P series from p4d on)",
        )
    return None


def _any(case: Case) -> bool:
    """Whether any channel goes by GPU Direct."""
    return case.world is not None and any(sum(m.net[2:]) for m in case.world.members.values())


def _cause(case: Case) -> Cause:
    return causes_plugins.EFA_GDR_OFF if case.over_efa else causes.GDR_OFF


def _below(case: Case) -> dict[str, object]:
    """The check to look at next: that of GPU Direct is none of EFA's."""
    return {} if case.over_efa else {"next_check": "physical.gpudirect"}


def _gdr_nowhere(case: Case) -> Ruling:
    return _gdr(case, everywhere=True)


def _gdr_partly(case: Case) -> Ruling:
    return _gdr(case, everywhere=False)


def _gdr(case: Case, *, everywhere: bool) -> Ruling:
    if gated := _gdr_gate(case, differ=not everywhere):
        return gated
    comm = case.world
    members = [] if comm is None else [m for m in comm.members.values() if sum(m.net)]
    if comm is None or not members:
        return unknown("no channel over the network was printed", INFO_EVERYWHERE)
    lacking = [member for member in members if lacks_gdr(member)]
    if not lacking or (len(lacking) == len(members)) is not everywhere:
        return right()
    hosts = machines_of(case, (member.proc for member in lacking))
    if not everywhere and case.damaged:
        return unknown(case.damaged, case.turn_on_whole)
    if not everywhere:
        ranks = sorted(rank for rank, m in comm.members.items() if m in lacking)
        reason = (
            f"{len(lacking)} of {len(members)} ranks lack GPU Direct RDMA: "
            f"ranks {_some(ranks)} on {fold_hosts(hosts)}"
        )
    elif all(m.net[1] == 0 and m.net[3] for m in lacking):
        return right("sends are staged, receives are direct: as designed before Ampere")
    else:
        ranks_here = many(len(lacking), "rank")
        reason = f"no rank uses GPU Direct RDMA: {ranks_here} on {fold_hosts(hosts)}"
    wanted = not everywhere or any(case.expected(m.proc.host).gdr for m in lacking)
    return wrong(
        Found(
            rule="LOG-025" if everywhere else "LOG-026",
            cause=_cause(case),
            status=Status.FAIL if wanted else Status.WARN,
            reason=reason,
            hosts=hosts,
            evidence=tuple(case.where(member.at for member in lacking)),
            measured={"ranks_without_gdr": len(lacking), **_below(case)},
        )
    )


def _some(ranks: list[int]) -> str:
    shown = ", ".join(map(str, ranks[:8]))
    return f"{shown}, ..." if len(ranks) > 8 else shown


def _distance(case: Case) -> Ruling:
    if gated := _gdr_gate(case):
        return gated
    if not any(proc.gdr for proc in case.procs):
        return unknown("no GPU Direct line (NET subsystem, TRACE only from 2.30.3)", SUBSYSTEMS)
    found = []
    far: dict[tuple[str, int, int], list[Process]] = {}
    for proc in case.procs:
        by_gpu: dict[str, list[tuple[bool, int, int, tuple[int, int]]]] = {}
        for (gpu, _), fact in proc.gdr.items():
            by_gpu.setdefault(gpu, []).append(fact)
        for facts in by_gpu.values():
            if not any(fact[0] for fact in facts):
                near = min(facts, key=lambda fact: fact[1])
                far.setdefault((case.machine(proc.host), near[1], near[2]), []).append(proc)
    for (host, distance, limit), procs in far.items():
        name = distance_name(distance, case.version)
        found.append(
            Found(
                rule="LOG-027",
                cause=_cause(case),
                reason=f"every NIC is too far from {many(len(procs), 'GPU')} of {host} for "
                f"GPU Direct: distance {distance}{f' ({name})' if name else ''}, limit {limit}",
                hosts=(host,),
                evidence=tuple(case.where(fact[3] for p in procs for fact in p.gdr.values())),
                measured={"distance": distance, "limit": limit, **_below(case)},
            )
        )
    return wrong(*found[:20])


_DISTANCES: Final = (
    ((2, 7), "LOC NVL PIX PXB PHB SYS NET"),
    ((2, 8), "LOC NVL NVB PIX PXB PHB SYS NET"),
    ((2, 12), "LOC NVL NVB PIX PXB PXN PHB SYS DIS"),
    ((2, 18), "LOC NVL NVB PIX PXB PXN PHB SYS NET DIS"),
    ((2, 26), "LOC NVL NVB C2C PIX PXB PXN PHB SYS NET DIS"),
    ((2, 27), "LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS NET DIS"),
)
"""Names of the distance codes by version (NCCL src/graph/topo.h)."""


def distance_name(code: int, version: tuple[int, int, int] | None) -> str:
    """The name of a distance code; empty where the version is not known: the numbers moved."""
    if version is None:
        return ""
    table = [words for since, words in _DISTANCES if version[:2] >= since]
    if not table:
        return ""
    words = table[-1].split()
    return words[code] if code < len(words) else ""


def _hca(case: Case) -> Ruling:
    if gated := _gdr_gate(case):
        return gated
    if not any(proc.gdr_hca for proc in case.procs):
        return unknown("no GPU Direct line of a HCA (NET subsystem)", SUBSYSTEMS)
    comm = case.world
    found: dict[str, Found] = {}
    for proc in case.procs:
        names = {nic.index: nic.name for nic in proc.nics or ()}
        used = {
            names.get(key[2], "") for key in (comm.nic_use if comm else ()) if key[0] == proc.host
        }
        off = {name: at for name, (on, at) in proc.gdr_hca.items() if not on and name in used}
        host = case.machine(proc.host)
        if off and host not in found:
            gdr = case.expected(proc.host).gdr
            found[host] = Found(
                rule="LOG-028",
                cause=_cause(case),
                status=Status.FAIL if gdr else Status.WARN,
                reason=f"GPU Direct RDMA is disabled for {', '.join(sorted(off))} of {host}, "
                "which carry channels",
                hosts=(host,),
                evidence=tuple(case.where(off.values())),
                measured=_below(case),
            )
    return wrong(*list(found.values())[:20])


def _ring_gdr(case: Case) -> Ruling:
    if gated := _gdr_gate(case):
        return gated
    comm = case.world
    members = [m for m in comm.members.values() if m.ring_gdr is not None] if comm else []
    if not members:
        return unknown("no 'Connected all rings, ... GDR' line (2.24 and newer)", INFO_EVERYWHERE)
    if any(m.ring_gdr for m in members) or not any(sum(m.net) for m in members):
        return right()
    if any(lacks_gdr(m) is False for m in members):
        return right("the channels themselves use GPU Direct")
    hosts = machines_of(case, (m.proc for m in members))
    gdr = any(case.expected(m.proc.host).gdr for m in members)
    return wrong(
        Found(
            rule="LOG-029",
            cause=_cause(case),
            status=Status.FAIL if gdr else Status.WARN,
            reason=f"rings are connected without GPU Direct (GDR 0) on {fold_hosts(hosts)}",
            hosts=hosts,
            evidence=tuple(case.where(m.at for m in members)),
        )
    )


def _rails(case: Case) -> Ruling:
    if gated := not_over_network(case):
        return gated
    comm = case.world
    both = {k: v for k, v in comm.rails.items() if min(v) >= 0} if comm else {}
    if comm is None or not both:
        return unknown("no channel whose both ends were printed", INFO_EVERYWHERE)
    if not any(case.expected(proc.host).rail_only for proc in case.procs):
        return other("commcheck_rail_only is not declared: crossing rails is allowed")

    def name(rank: int, device: int) -> str:
        nics = comm.members[rank].proc.nics or () if rank in comm.members else ()
        return next((nic.name for nic in nics if nic.index == device), str(device))

    crossed = [
        (key, name(key[1], ends[0]), name(key[2], ends[1]))
        for key, ends in both.items()
        if name(key[1], ends[0]) != name(key[2], ends[1])
    ]
    if not crossed:
        return right()
    (channel, source, target), sends, receives = crossed[0]
    hosts = tuple(
        dict.fromkeys(h for k, _, _ in crossed for r in k[1:] if (h := case.rank_host(comm, r)))
    )
    return wrong(
        Found(
            rule="LOG-030",
            cause=causes.CROSS_RAIL,
            reason=f"{len(crossed)} of {len(both)} connections cross rails, as channel {channel}: "
            f"rank {source} sends on {sends}, rank {target} receives on {receives}",
            hosts=hosts,
            evidence=tuple(
                case.where([comm.net_pairs.get(k[1] << 24 | k[2]) for k, _, _ in crossed[:50]])
            ),
        )
    )


RULES: Final = (
    Rule("LOG-025", "GPU Direct RDMA is used", _gdr_nowhere),
    Rule("LOG-026", "GPU Direct RDMA on every rank alike", _gdr_partly),
    Rule("LOG-027", "a NIC near each GPU", _distance),
    Rule("LOG-028", "GPU Direct RDMA on each HCA", _hca),
    Rule("LOG-029", "rings with GPU Direct", _ring_gdr),
    Rule("LOG-030", "traffic stays on its rail", _rails),
)

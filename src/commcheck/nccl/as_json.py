"""The facts of a log as plain JSON, for ``--format json``."""

from __future__ import annotations

from collections import Counter

from commcheck.nccl.case import Case
from commcheck.nccl.facts import Comm, Process
from commcheck.nccl.hccl import Hccl
from commcheck.nccl.topology import rings

RANKS_MOST = 4096
COMMS_MOST = 200
DETAILED_MOST = 8
"""Communicators whose ranks and trees are listed: a job may have thousands."""


def facts_of(case: Case) -> dict[str, object]:
    """Everything that was read, bounded: long lists are cut and say so."""
    job = case.job
    stats = job.stats
    return {
        "library": "hccl"
        if job.hccl.any and not stats.nccl_lines
        else "rccl"
        if job.rccl
        else "nccl",
        "version_known": case.version is not None,
        "versions": dict(job.banners),
        "files": list(job.files),
        "processes": [_process(case, proc) for proc in case.procs[:RANKS_MOST]],
        "processes_total": len(case.procs),
        "hosts": list(case.hosts),
        "attempts": case.attempts,
        "networks": {name: len(procs) for name, procs in case.networks.items()},
        "network_in_use": case.network_in_use,
        "nics": _nics(case),
        "env": _environment(case.procs),
        "pasted_env": dict(job.pasted_env),
        "pasted_gids": list(job.pasted_gids),
        "communicators": [
            _comm(comm) | (_ranks(case, comm) if number < DETAILED_MOST else {})
            for number, comm in enumerate(_largest_first(case)[:COMMS_MOST])
        ],
        "communicators_total": len(case.comms),
        "errors": [
            {
                "kind": error.kind,
                "process": error.proc.label,
                "where": job.where(error.at),
                "text": error.text,
                "secondary": error.secondary,
                "time_s": error.time_s,
                **error.values,
            }
            for error in case.errors[:RANKS_MOST]
        ],
        "timeouts": [
            {
                "rank": t.rank,
                "seq": t.seq,
                "op": t.op,
                "timeout_ms": t.timeout_ms,
                "where": job.where(t.at),
            }
            for t in job.timeouts[:RANKS_MOST]
        ],
        "diagnostics": [f"{d.host}: {d.tag} {d.text}" for d in job.diag[:RANKS_MOST]],
        "hccl": _hccl(job.hccl) if job.hccl.any else None,
        "stats": {
            "lines": stats.lines,
            "nccl_lines": stats.nccl_lines,
            "unparsed_fragments": stats.fragments,
            "errors_not_kept": sum(proc.errors_more for proc in case.procs),
            "connections_tried_again": job.retrying,
            "lines_replaced_by_ray": stats.repeated,
            "unknown_warnings": dict(stats.unknown_warnings),
        },
    }


def _process(case: Case, proc: Process) -> dict[str, object]:
    return {
        "host": proc.host,
        "machine": case.machine(proc.host),
        "pid": proc.pid,
        "version": ".".join(map(str, proc.version)) if proc.version else None,
        "driver": proc.driver,
        "network": proc.network,
        "libfabric_provider": proc.provider,
        "bootstrap": list(proc.oob) if proc.oob else None,
        "local_rank": proc.local_rank,
        "global_rank": proc.global_rank,
        "lines": proc.lines,
    }


def _nics(case: Case) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = {}
    for proc in case.procs:
        if proc.nics and proc.host not in found:
            found[proc.host] = [
                {"index": nic.index, "name": nic.name, "port": nic.port, "link": nic.link}
                for nic in proc.nics
            ]
    return found


def _environment(procs: tuple[Process, ...]) -> dict[str, dict[str, int]]:
    """Values echoed of each setting, and by how many processes."""
    found: dict[str, Counter[str]] = {}
    for proc in procs:
        for name, value in proc.env.items():
            found.setdefault(name, Counter())[value] += 1
    return {name: dict(counts) for name, counts in sorted(found.items())}


def _largest_first(case: Case) -> list[Comm]:
    return sorted(case.comms, key=lambda comm: (-comm.nranks, comm.order))


def _comm(comm: Comm) -> dict[str, object]:
    return {
        "key": " ".join(str(part) for part in comm.key),
        "nranks": comm.nranks,
        "nodes": comm.nodes,
        "mnnvl": comm.mnnvl,
        "ranks_seen": len(comm.members),
        "started": sum(m.start for m in comm.members.values()),
        "completed": sum(m.complete for m in comm.members.values()),
        "destroyed": sum(m.gone for m in comm.members.values()),
        "edges": {kind: comm.edges(kind) for kind in ("P2P", "SHM", "send", "receive")},
        "channel_lines": dict(comm.via),
        "ring_listing_cut": comm.listing_cut,
        "ambiguous_lines": comm.ambiguous,
    }


def _ranks(case: Case, comm: Comm) -> dict[str, object]:
    known = rings(case, comm)
    missing = [rank for rank in range(comm.nranks) if rank not in comm.members]
    return {
        "missing": missing[:RANKS_MOST],
        "ranks": {
            str(rank): {
                "host": m.proc.host,
                "pid": m.proc.pid,
                "cuda_dev": m.cuda_dev,
                "bus": m.bus,
                "nvml_dev": m.nvml_dev,
            }
            for rank, m in sorted(comm.members.items())[:RANKS_MOST]
        },
        "sends_by_nic": {
            f"{host} {net}/{device}": n
            for (host, net, device), n in sorted(comm.nic_use.items())[:RANKS_MOST]
        },
        "rings": len(known),
        "crossings": sorted({ring.crossings for ring in known}) if known else None,
        "crossings_minimum": known[0].minimum if known else None,
        "ring": list(known[0].order)[:RANKS_MOST] if known else None,
        "trees": {
            str(rank): {"down": list(down), "up": up}
            for rank, (down, up) in sorted(comm.trees.items())[:RANKS_MOST]
        },
    }


def _hccl(hccl: Hccl) -> dict[str, object]:
    return {
        "ranks": hccl.nranks,
        "servers": hccl.servers,
        "processes": [
            {
                "pid": n.pid,
                "rank": n.rank,
                "server": n.server,
                "device": n.device,
                "device_ip": n.device_ip,
                "errors": n.errors,
                "first_error": n.fault.text if n.fault else None,
                "env": dict(n.env),
                "tls": sorted(n.tls),
            }
            for n in list(hccl.npus.values())[:RANKS_MOST]
        ],
        "codes": [
            {"code": c.code, "rank": c.rank, "pid": c.pid, "text": c.text} for c in hccl.codes[:200]
        ],
        "links": [
            {
                "source": k.source.rank,
                "target": k.target.rank,
                "source_server": k.source.server,
                "target_server": k.target.server,
                "rdma": k.rdma,
            }
            for k in hccl.links[:RANKS_MOST]
        ],
        "need": hccl.need,
        "connected": hccl.connected,
        "connected_ranks": sorted(hccl.connected_ranks)[:RANKS_MOST],
    }

"""Rules on HCCL's logs: HLOG-001 to HLOG-008."""

from __future__ import annotations

from typing import Final

from commcheck.model import Status
from commcheck.nccl import causes_hccl
from commcheck.nccl.case import Case
from commcheck.nccl.hccl import Code, Hccl, Npu
from commcheck.nccl.rules_init import some
from commcheck.nccl.ruling import Found, Rule, Ruling, other, right, unknown, wrong

_PLOGS: Final = "collect the plog folders (debug and run) of all ranks"
_LEVEL: Final = "ASCEND_GLOBAL_LOG_LEVEL=3 or lower, and the debug plogs of all ranks"

CODES: Final = {
    "EI0001": "an HCCL_* variable has a bad value",
    "EI0002": "a rank waited too long inside an operator; the culprit is the one not waiting",
    "EI0003": "bad argument of a collective",
    "EI0004": "the rank table cannot be read",
    "EI0005": "ranks call with different arguments",
    "EI0006": "no link to a peer in time: it is late, dead, or its device network is broken",
    "EI0007": "a resource is not available",
    "EI0008": "CANN versions differ between ranks",
    "EI0009": "a transport could not be set up",
    "EI0010": "devices of one server cannot reach each other",
    "EI0011": "too little device memory for queue pairs",
    "EI0012": "an SDMA copy failed: HCCS link or freed buffer",
    "EI0013": "RoCE lost packets (status 12: no acknowledgement)",
    "EI0014": "the rank table disagrees with the devices",
    "EI0015": "ranks never connected over the hosts' network",
    "EI0016": "TLS differs between ranks",
    "EI0017": "the rank table disagrees with the devices",
    "EI0018": "a UB link lost packets",
    "EI0019": "a port is already in use: a process of the last job is left",
    "EI0020": "a port is already in use: a process of the last job is left",
    "EI9999": "internal error",
    "EJ0001": "the link process did not start: mostly the last job still owns the device",
    "EJ0003": "an address or port is in use",
}
"""Meanings of the codes (CANN documentation, HCCL error codes of releases 7 to 8.5)."""


def _gate(case: Case) -> Ruling | None:
    return None if case.job.hccl.any else other("no line of HCCL")


def _npu_of(hccl: Hccl, code: Code) -> Npu | None:
    for npu in hccl.npus.values():
        if (code.pid is not None and npu.pid == code.pid) or (
            code.rank is not None and npu.rank == code.rank
        ):
            return npu
    return None


def _codes(case: Case) -> Ruling:
    if gated := _gate(case):
        return gated
    hccl = case.job.hccl
    if not hccl.codes:
        if hccl.has_debug:
            return right()
        return unknown("only run logs: errors stand in debug/plog and in the job's output", _PLOGS)
    first = min(hccl.codes, key=lambda code: (code.time_s is None, code.time_s or 0.0, code.at))
    npu = _npu_of(hccl, first)
    detect = first.code == "EI0006" and hccl.need is not None
    meaning = CODES.get(first.code, "see its text")
    if detect:
        meaning = f"{CODES['EI0015']} (reported as EI0006 before CANN 8.3)"
    servers = (npu.server,) if npu and npu.server else ()
    return wrong(
        Found(
            rule="HLOG-001",
            cause=causes_hccl.HCCL_CODE,
            reason=f"first of {len(hccl.codes)} errors: {first.code} on "
            f"{npu.label if npu else 'an unnamed rank'}: {meaning}",
            hosts=servers,
            evidence=tuple(case.where([first.at])),
            measured={"code": first.code, "codes": len(hccl.codes)},
            places={"device": npu.device if npu and npu.device is not None else ""},
        )
    )


def _missing(case: Case) -> Ruling:
    if gated := _gate(case):
        return gated
    hccl = case.job.hccl
    absent = set(hccl.failed_agents)
    if hccl.need is not None and hccl.connected_ranks:
        listed = set(range(hccl.need)) - hccl.connected_ranks
        absent |= listed if len(hccl.connected_ranks) == hccl.connected else set()
    if not absent:
        if hccl.need is not None and (hccl.connected or 0) < hccl.need:
            return unknown(
                f"{hccl.connected} of {hccl.need} ranks connected, which ones is cut off", _PLOGS
            )
        return right() if hccl.has_debug else unknown("no debug plog", _LEVEL)
    ranks = sorted(absent)
    return wrong(
        Found(
            rule="HLOG-002",
            cause=causes_hccl.HCCL_MISSING,
            reason=f"ranks {some(ranks)} never connected to the root"
            + (f": {hccl.connected} of {hccl.need} did" if hccl.need else ""),
            hosts=tuple(
                dict.fromkeys(n.server for r in ranks if (n := hccl.of_rank(r)) and n.server)
            ),
            evidence=tuple(case.where([hccl.root_at])),
            measured={"missing_ranks": ranks[:200]},
        )
    )


def _chain(case: Case) -> Ruling:
    if gated := _gate(case):
        return gated
    hccl = case.job.hccl
    if not hccl.links:
        return right() if hccl.has_debug else unknown("no debug plog", _LEVEL)
    waits: dict[int, set[int]] = {}
    for link in hccl.links:
        waits.setdefault(link.source, set()).add(link.target)
    ends = {target for each in waits.values() for target in each if target not in waits}
    if len(ends) != 1:
        return unknown(
            f"who waits for whom ends at {len(ends)} ranks" if ends else "ranks wait in a circle",
            _PLOGS,
        )
    rank = ends.pop()
    npu = hccl.of_rank(rank)
    into = [link for link in hccl.links if link.target == rank]
    server, device = into[0].target_server, into[0].target_device
    own = "it has no error of its own" if npu is not None and not npu.errors else ""
    absent = "its log is not in the input" if npu is None else ""
    return wrong(
        Found(
            rule="HLOG-003",
            cause=causes_hccl.HCCL_LINK,
            reason=f"{len(waits)} ranks wait, in the end all for rank {rank} ({server} device "
            f"{device})" + (f"; {own or absent}" if own or absent else ""),
            hosts=(server,),
            evidence=tuple(case.where(link.at for link in hccl.links)),
            measured={"root_rank": rank, "device": device, "server": server},
            places={"device": device, "address": npu.device_ip if npu else ""},
        )
    )


def _rdma(case: Case) -> Ruling:
    if gated := _gate(case):
        return gated
    hccl = case.job.hccl
    told = [link for link in hccl.links if link.rdma is not None]
    if not told:
        return right() if hccl.has_debug else unknown("no link is described", _LEVEL)
    bad = [link for link in told if not link.rdma and link.source_server != link.target_server]
    if not bad:
        return right()
    first = bad[0]
    return wrong(
        Found(
            rule="HLOG-004",
            cause=causes_hccl.HCCL_NO_RDMA,
            status=Status.WARN,
            reason=f"rank {first.source} ({first.source_server}) and rank {first.target} "
            f"({first.target_server}) are linked without RoCE",
            hosts=(first.source_server, first.target_server),
            evidence=tuple(case.where(link.at for link in bad)),
            places={"device": first.target_device},
        )
    )


def _heartbeat(case: Case) -> Ruling:
    if gated := _gate(case):
        return gated
    beats = case.job.hccl.beats
    if not beats:
        return right() if case.job.hccl.lines else unknown("no plog", _PLOGS)
    order = ("ERROR CQE", "STUCK", "LOST")
    root = min(beats, key=lambda beat: (order.index(beat.status), beat.at))
    return wrong(
        Found(
            rule="HLOG-005",
            cause=causes_hccl.HCCL_HEARTBEAT,
            reason=f"the heartbeat says {root.status} of {root.server} device {root.device}",
            hosts=(root.server,),
            evidence=tuple(case.where(b.at for b in beats if b.server == root.server)),
            measured={"status": root.status, "reports": len(beats)},
            places={"device": root.device},
        )
    )


def _late(case: Case) -> Ruling:
    if gated := _gate(case):
        return gated
    hccl = case.job.hccl
    failed = [n for n in hccl.npus.values() if n.first_error_s is not None]
    if len(failed) < 2:
        return right() if len(failed) == 1 or hccl.has_debug else unknown("no debug plog", _LEVEL)
    limits = {
        n.env["HCCL_CONNECT_TIMEOUT"] for n in hccl.npus.values() if "HCCL_CONNECT_TIMEOUT" in n.env
    }
    limit = next((int(text) for text in limits if text.isdigit()), None)
    if limit is None:
        return unknown("HCCL_CONNECT_TIMEOUT is not in the log", "collect the run plogs, too")
    first = min(failed, key=lambda n: n.first_error_s or 0.0)
    last = max(failed, key=lambda n: n.first_error_s or 0.0)
    spread = (last.first_error_s or 0.0) - (first.first_error_s or 0.0)
    if spread <= limit:
        return right(f"errors lie {spread:.0f} s apart, within {limit} s")
    return wrong(
        Found(
            rule="HLOG-006",
            cause=causes_hccl.HCCL_LATE,
            reason=f"errors lie {spread:.0f} s apart, more than HCCL_CONNECT_TIMEOUT ({limit} s): "
            f"{last.label} was late",
            hosts=(last.server,) if last.server else (),
            evidence=tuple(case.where([first.first_error_at, last.first_error_at])),
            measured={"spread_s": round(spread, 3), "connect_timeout_s": limit},
        )
    )


def _tls(case: Case) -> Ruling:
    if gated := _gate(case):
        return gated
    hccl = case.job.hccl
    states = {state: at for n in hccl.npus.values() for state, at in n.tls.items()}
    if not states:
        return unknown("no link table with TlsStatus", _LEVEL)
    if len(states) == 1:
        return right()
    on = [n for n in hccl.npus.values() if "ENABLE" in n.tls]
    return wrong(
        Found(
            rule="HLOG-007",
            cause=causes_hccl.HCCL_TLS,
            reason=f"TLS is on for {', '.join(n.label for n in on[:4])} and off for others",
            hosts=tuple(dict.fromkeys(n.server for n in on if n.server)),
            evidence=tuple(case.where(states.values())),
            places={"device": on[0].device if on and on[0].device is not None else ""},
        )
    )


def _desync(case: Case) -> Ruling:
    if gated := _gate(case):
        return gated
    hccl = case.job.hccl
    by_task: dict[tuple[str, str], dict[str, Npu]] = {}
    for npu in hccl.npus.values():
        for tag in npu.failed_tags:
            group, task, operator = tag.rsplit("#", 2)
            by_task.setdefault((group, task), {})[operator] = npu
    if not by_task:
        return right() if hccl.has_debug else unknown("no failed task is described", _LEVEL)
    differ = {key: ops for key, ops in by_task.items() if len(ops) > 1}
    if not differ:
        return right()
    (_, task), operators = next(iter(sorted(differ.items())))
    said = ", ".join(f"{op} on {npu.label}" for op, npu in sorted(operators.items()))
    return wrong(
        Found(
            rule="HLOG-008",
            cause=causes_hccl.HCCL_DESYNC,
            reason=f"ranks fail in different operators at task {task}: {said}",
            hosts=tuple(dict.fromkeys(n.server for n in operators.values() if n.server)),
            evidence=tuple(
                case.where(at for n in operators.values() for at in n.failed_tags.values())
            ),
        )
    )


RULES: Final = (
    Rule("HLOG-001", "no error code", _codes),
    Rule("HLOG-002", "all ranks connected to the root", _missing),
    Rule("HLOG-003", "all links were made", _chain),
    Rule("HLOG-004", "RoCE between servers", _rdma),
    Rule("HLOG-005", "the heartbeat names nobody", _heartbeat),
    Rule("HLOG-006", "no rank is late", _late),
    Rule("HLOG-007", "TLS alike everywhere", _tls),
    Rule("HLOG-008", "ranks stay in step", _desync),
)

"""Rules on HCCL's logs: HLOG-001, 002, 005 and 008; ``rules_hccl_links`` has the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from commcheck.model import Cause, Status
from commcheck.nccl import causes_hccl, rules_hccl_links
from commcheck.nccl.case import Case
from commcheck.nccl.flight_groups import some
from commcheck.nccl.hccl import Code, Hccl, Npu
from commcheck.nccl.hccl_codes import (
    CODES,
    NPU_PORT,
    WAITING,
    is_certain,
    quoted,
    result_of,
)
from commcheck.nccl.hccl_links import End
from commcheck.nccl.rules_hccl_links import LEVEL, PLOGS, chain, gate, has_debug, late, tls
from commcheck.nccl.ruling import Found, Rule, Ruling, other, right, unknown, wrong

CAUSES: Final = {
    "EI0001": causes_hccl.HCCL_VARIABLE,
    "EI0002": causes_hccl.HCCL_PEER,
    "EI0004": causes_hccl.HCCL_RANK_TABLE,
    "EI0005": causes_hccl.HCCL_DESYNC,
    "EI0006": causes_hccl.HCCL_PEER,
    "EI0008": causes_hccl.HCCL_VERSIONS,
    "EI0009": causes_hccl.HCCL_PEER,
    "EI0013": causes_hccl.HCCL_LOSS,
    "EI0014": causes_hccl.HCCL_RANK_TABLE,
    "EI0015": causes_hccl.HCCL_MISSING,
    "EI0016": causes_hccl.HCCL_TLS,
    "EI0017": causes_hccl.HCCL_RANK_TABLE,
    "EI0019": causes_hccl.HCCL_HOST_PORT,
    "EI0020": causes_hccl.HCCL_NPU_PORT,
    "EJ0001": causes_hccl.HCCL_LEFT,
    "EJ0003": causes_hccl.HCCL_HOST_PORT,
    "EJ0004": causes_hccl.HCCL_RANK_TABLE,
}
"""What to do about a code: its solution in CANN's list (atlaserrorcode_15, hcomm error_codes)."""


def _cause_of(code: Code) -> Cause:
    cause = CAUSES.get(code.code, causes_hccl.HCCL_CODE)
    if cause is causes_hccl.HCCL_HOST_PORT and NPU_PORT.search(code.text):
        return causes_hccl.HCCL_NPU_PORT  # up to CANN 8.5 one code stands for both sides
    if code.code == "EI0014" and "tls" in code.text.lower():
        return causes_hccl.HCCL_TLS  # CANN 8.5
    return cause


def _end_of(hccl: Hccl, code: Code) -> End:
    """The rank that said it, from its plog, or from what torch_npu prints of the process."""
    npu = _npu_of(hccl, code)
    worker = hccl.workers.get(code.pid) if code.pid is not None else None
    ranks = (code.rank, npu.rank if npu else None, worker.rank if worker else None)
    devices = (npu.device if npu else None, worker.device if worker else None)
    return End(
        next((rank for rank in ranks if rank is not None), None),
        npu.server if npu else "",
        next((device for device in devices if device is not None), None),
    )


def _npu_of(hccl: Hccl, code: Code) -> Npu | None:
    """Its process. A pid means one on one server only: of several it is that of the same file."""
    found = [npu for npu in hccl.npus.values() if _may_be(npu, code)]
    if len({npu.server for npu in found if npu.server}) > 1:
        found = [npu for npu in found if code.at[0] in npu.files]
    if len({npu.server for npu in found if npu.server}) > 1:
        return None
    return max(found, key=lambda npu: (npu.device is not None, npu.rank is not None), default=None)


def _may_be(npu: Npu, code: Code) -> bool:
    same_rank = code.rank is not None and npu.rank == code.rank
    if code.pid is None:
        return same_rank
    return npu.pid == code.pid and (same_rank or None in (code.rank, npu.rank))


def _codes(case: Case) -> Ruling:
    if gated := gate(case):
        return gated
    hccl = case.job.hccl
    first = hccl.first
    if first is None:
        if has_debug(case):
            return right()
        return unknown("only run logs: errors stand in debug/plog and in the job's output", PLOGS)
    if first.code in ("", *WAITING) and (rule := _root(case)):
        return other(f"ranks that waited report {first.code or 'an error'}: {rule} says for whom")
    end = _end_of(hccl, first)
    who = end.label or (f"pid {first.pid}" if first.pid is not None else "a rank not named")
    cause, meaning = _cause_of(first), CODES.get(first.code, "")
    if first.code == "EI0006" and hccl.need is not None:
        cause = causes_hccl.HCCL_MISSING
        meaning = f"{CODES['EI0015']} (reported as EI0006 before CANN 8.3)"
    if cause is causes_hccl.HCCL_TLS:
        meaning = CODES["EI0016"]
    meaning = meaning or result_of(first.text) or "see its text"
    said = first.code or "no code"
    if first.code and first not in hccl.codes:
        said = f"the words of {first.code}"
    certain = bool(first.code) or is_certain(first.text)
    return wrong(
        Found(
            rule="HLOG-001",
            cause=cause,
            status=Status.FAIL if certain else Status.WARN,
            reason=f"{_first_of(hccl)}: {said} on {who}: {meaning}: {quoted(first.text)}",
            hosts=(end.server,) if end.server else (),
            evidence=tuple(case.where([first.at])),
            measured={"code": first.code, "codes": len(hccl.codes)},
            places={"device": "" if end.device is None else end.device},
        )
    )


def _first_of(hccl: Hccl) -> str:
    """How many said something: by codes, else by processes."""
    count = len(hccl.codes) or sum(npu.errors > 0 for npu in hccl.npus.values())
    return f"first of {count} errors" if count > 1 else "one error"


def _root(case: Case) -> str:
    """The rule that names for whom, or for what, ranks waited; "" where none does."""
    asked: tuple[tuple[str, Callable[[Case], Ruling]], ...] = (
        ("HLOG-002", _missing),
        ("HLOG-003", chain),
        ("HLOG-005", _heartbeat),
        ("HLOG-006", late),
        ("HLOG-007", tls),
        ("HLOG-008", _desync),
    )
    return next((rule for rule, judge in asked if judge(case).state == "wrong"), "")


def _missing(case: Case) -> Ruling:
    if gated := gate(case):
        return gated
    hccl = case.job.hccl
    absent = set(hccl.failed_agents)
    if hccl.need is not None and hccl.connected_ranks:
        listed = set(range(hccl.need)) - hccl.connected_ranks
        absent |= listed if len(hccl.connected_ranks) == hccl.connected else set()
    if not absent:
        if hccl.need is not None and (hccl.connected or 0) < hccl.need:
            return unknown(
                f"{hccl.connected} of {hccl.need} ranks connected, which ones is cut off", PLOGS
            )
        return right() if has_debug(case) else unknown("no debug plog", LEVEL)
    ranks = sorted(absent)
    return wrong(
        Found(
            rule="HLOG-002",
            cause=causes_hccl.HCCL_MISSING,
            reason=f"{some(ranks)} never connected to the root"
            + (f": {hccl.connected} of {hccl.need} did" if hccl.need else ""),
            hosts=tuple(
                dict.fromkeys(n.server for r in ranks if (n := hccl.of_rank(r)) and n.server)
            ),
            evidence=tuple(case.where([hccl.root_at])),
            measured={"missing_ranks": ranks[:200]},
        )
    )


def _heartbeat(case: Case) -> Ruling:
    if gated := gate(case):
        return gated
    beats, losses = case.job.hccl.beats, case.job.hccl.losses
    if losses:
        return wrong(_loss(case))
    if not beats:
        return right() if case.job.hccl.lines else unknown("no plog", PLOGS)
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


def _loss(case: Case) -> Found:
    """A RoCE link on which the retries ran out: more than the heartbeat says of it."""
    losses = case.job.hccl.losses
    pairs = dict.fromkeys((link.source, link.target) for link in losses)
    named = ", ".join(f"{one.label} from {two.label}" for one, two in list(pairs)[:4])
    one, two = next(iter(pairs))
    return Found(
        rule="HLOG-005",
        cause=causes_hccl.HCCL_LOSS,
        reason=f"no answer over RoCE: {named}" + (" ..." if len(pairs) > 4 else ""),
        hosts=tuple(dict.fromkeys(end.server for end in (one, two) if end.server)),
        evidence=tuple(case.where(link.at for link in losses)),
        measured={"pairs": len(pairs), "reports": len(losses)},
        places={
            "waiter": one.server,
            "device": "" if one.device is None else one.device,
            "address": two.address,
        },
    )


def _desync(case: Case) -> Ruling:
    if gated := gate(case):
        return gated
    hccl = case.job.hccl
    by_task: dict[tuple[str, str], dict[str, Npu]] = {}
    for npu in hccl.npus.values():
        for tag in npu.failed_tags:
            group, task, operator = tag.rsplit("#", 2)
            by_task.setdefault((group, task), {})[operator] = npu
    if not by_task:
        return right() if has_debug(case) else unknown("no failed task is described", LEVEL)
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


RULES: Final = tuple(
    sorted(
        (
            Rule("HLOG-001", "no error", _codes),
            Rule("HLOG-002", "all ranks connected to the root", _missing),
            Rule("HLOG-005", "the heartbeat names nobody", _heartbeat),
            Rule("HLOG-008", "ranks stay in step", _desync),
            *rules_hccl_links.RULES,
        ),
        key=lambda rule: rule.id,
    )
)

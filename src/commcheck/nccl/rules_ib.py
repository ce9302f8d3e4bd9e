"""Rules on RDMA errors: completions, connections that were not set up, events of the NIC."""

from __future__ import annotations

import ipaddress
from typing import Final

from commcheck.model import Status
from commcheck.nccl import causes_errors
from commcheck.nccl.case import Case
from commcheck.nccl.errors import event_class
from commcheck.nccl.facts import Error
from commcheck.nccl.rules_errors import (
    FLUSHED,
    hosts_of,
    is_secondary,
    of_peers,
    on,
    peer_of,
    places_of,
    status_of,
    times,
)
from commcheck.nccl.ruling import Found, Rule, Ruling, right, unknown, wrong
from commcheck.report.counts import many
from commcheck.report.ranges import fold_hosts

EARLY_S: Final = 60
LATE_S: Final = 600

_STATUS: Final = {
    "4": "memory registration (LOC_PROT_ERR)",
    "9": "the peer refused the request (REM_INV_REQ_ERR)",
    "10": "remote memory key (REM_ACCESS_ERR)",
    "11": "the remote side failed (REM_OP_ERR)",
    "12": "no acknowledgement (RETRY_EXC_ERR)",
    "13": "the receiver was not ready (RNR_RETRY_EXC_ERR)",
}


def _retry(case: Case) -> Ruling:
    errors = [e for e in case.of_kind("completion") if status_of(e) == "12"]
    flushed = [e for e in case.of_kind("completion") if status_of(e) == FLUSHED]
    if not errors:
        if flushed and not [e for e in case.of_kind("completion") if not is_secondary(e)]:
            peers = sorted({peer_of(e) for e in flushed if peer_of(e)})
            return unknown(
                "only flushed requests (status 5): the first error is in another log"
                f"{of_peers(peers)}",
                f"collect the log of {', '.join(peers) or 'the peer'}",
            )
        return right()
    first = min(errors, key=lambda e: (e.time_s is None, e.time_s or 0.0, e.at))
    rule, when = _moment(case, first)
    values = first.values
    path = f" ({values['local']} to {values['remote']})" if "remote" in values else ""
    device = f" hca {values['hca']}" if "hca" in values else ""
    hosts = hosts_of(case, errors)
    rank = _rank_of(case, first)
    link_local = _is_link_local(values.get("local", "")) or _is_link_local(values.get("remote", ""))
    return wrong(
        Found(
            rule=rule,
            cause=causes_errors.RETRY_EXCEEDED,
            reason=f"{rank}{device}: no acknowledgement from {peer_of(first) or 'its peer'}{path}, "
            f"status 12{when}"
            + ("; a link-local GID: a wrong GID index" if link_local else "")
            + (f"; {many(len(flushed), 'flushed request')} after it" if flushed else ""),
            hosts=hosts,
            evidence=tuple(case.where(e.at for e in errors)),
            measured={
                "events": len(errors),
                "flushed_after": len(flushed),
                "peer": peer_of(first),
                "hca": values.get("hca", ""),
                "next_check": "physical.rdma-port-active",
            },
            places=places_of(first),
        )
    )


def _rank_of(case: Case, error: Error) -> str:
    comm = case.world
    ranks = sorted(error.proc.comms.get(comm, ())) if comm else []
    named = f"rank {ranks[0]} ({error.proc.host} pid {error.proc.pid})" if ranks else ""
    return named or error.proc.label


def _moment(case: Case, error: Error) -> tuple[str, str]:
    """Which rule, by the time since init; the log often has no time of init."""
    comm = case.world
    done = [m.complete_s for m in comm.members.values() if m.complete_s] if comm else []
    if error.time_s is None or not done or case.job.stats.repeated:
        return "LOG-032/033", "; whether the path ever worked is not in the log"
    after = error.time_s - max(done)
    if after <= EARLY_S:
        return "LOG-032", f", {max(0.0, after):.0f} s after init: the path never worked"
    if after > LATE_S:
        return "LOG-033", f", {after / 60:.0f} minutes after init: the path worked before"
    return "LOG-032/033", f", {after:.0f} s after init"


def _ipv4(gid: str) -> str:
    """The IPv4 address that a GID carries; "" where it carries none."""
    try:
        return str(ipaddress.IPv6Address(gid).ipv4_mapped or "")
    except ValueError:
        return ""


def _is_link_local(gid: str) -> bool:
    try:
        return bool(gid) and ipaddress.ip_address(gid).is_link_local
    except ValueError:
        return False


def _completions(case: Case) -> Ruling:
    errors = [e for e in case.of_kind("completion") if status_of(e) not in ("12", FLUSHED, "0", "")]
    if not errors:
        return right()
    first = errors[0]
    meaning = _STATUS.get(status_of(first), "see the verbs documentation")
    hosts = hosts_of(case, errors)
    return wrong(
        Found(
            rule="LOG-035",
            cause=causes_errors.COMPLETION,
            reason=f"{_rank_of(case, first)}: RDMA failed with status {status_of(first)}, "
            f"{meaning}, peer {peer_of(first) or 'not named'}{times(len(errors))}",
            hosts=hosts,
            evidence=tuple(case.where(e.at for e in errors)),
            measured={"status": int(status_of(first)), "events": len(errors)},
            places=places_of(first),
        )
    )


_WORDS: Final = {
    "Connection timed out": "110",
    "No route to host": "113",
    "Network is unreachable": "101",
    "Invalid argument": "22",
    "No such device": "19",
    "No data available": "61",
}
_QP: Final = {
    "110": "the remote RoCE address does not answer",
    "113": "no route to the remote RoCE address",
    "101": "the network of the remote RoCE address is unreachable",
    "22": "the local GID is empty or invalid",
    "19": "there is no GID at this index",
    "61": "there is no GID at this index any more",
}
_UNREACHED: Final = ("110", "113", "101")


def _modify_qp(case: Case) -> Ruling:
    errors = case.of_kind("modify-qp")
    groups: dict[str, list[Error]] = {}
    for error in errors:
        said = error.values.get("error", "")
        code = error.values.get("errno") or error.values.get("code") or _WORDS.get(said, said)
        groups.setdefault(code, []).append(error)
    found = []
    for code, members in sorted(groups.items(), key=lambda each: each[1][0].at):
        first = members[0]
        values = first.values
        local, remote = values.get("local", ""), values.get("remote", "")
        wrong_index = _is_link_local(remote)
        hint = (
            f"; the remote GID {remote} is link-local: index {values.get('index', '?')} is wrong"
            if wrong_index
            else ""
        )
        unreached = code in _UNREACHED and not wrong_index
        device = f" on {values['dev']}" if "dev" in values else ""
        hosts = hosts_of(case, members)
        found.append(
            Found(
                rule="LOG-036",
                cause=causes_errors.UNREACHED if unreached else causes_errors.QP_SETUP,
                reason=f"{fold_hosts(hosts) or 'a process'}: no RDMA connection{device}, error "
                f"{code}: {_QP.get(code, 'see errno')}{hint}{times(len(members))}",
                hosts=hosts,
                evidence=tuple(case.where(e.at for e in members)),
                measured={
                    "error": code,
                    "local_gid": local,
                    "remote_gid": remote,
                    "events": len(members),
                    "next_check": f"physical.{'rail-reach' if unreached else 'roce-v2-gid'}",
                },
                places={**places_of(first), "address": _ipv4(local), "peer_address": _ipv4(remote)},
            )
        )
    return wrong(*found)


def _async(case: Case) -> Ruling:
    errors = case.of_kind("async")
    if not errors:
        return right()
    classes = {id(e): event_class(dict(e.values)) for e in errors}
    bad = [e for e in errors if classes[id(e)] != "news"]
    failed = {e.values.get("hca") for e in case.of_kind("completion")} - {None}
    followed = [e for e in errors if e.values.get("dev", "").partition(":")[0] in failed]
    shown = bad or followed or errors
    hosts = hosts_of(case, shown)
    devices = sorted({e.values.get("dev", "").partition(":")[0] for e in shown} - {""})
    event = shown[0].values.get("event", "event")[:60]
    return wrong(
        Found(
            rule="LOG-038",
            cause=causes_errors.ASYNC_EVENT,
            status=Status.FAIL if bad or followed else Status.WARN,
            reason=f"{event}{on(hosts)}{f' ({fold_hosts(devices)})' if devices else ''}"
            f"{times(len(shown))}" + ("" if bad or followed else ": mostly harmless by itself"),
            hosts=hosts,
            evidence=tuple(case.where(e.at for e in shown)),
            measured={"events": len(shown), "next_check": "physical.nic-link-up"},
        )
    )


RULES: Final = (
    Rule("LOG-032", "RDMA packets are acknowledged", _retry),
    Rule("LOG-035", "RDMA operations succeed", _completions),
    Rule("LOG-036", "RDMA connections are set up", _modify_qp),
    Rule("LOG-038", "NICs report no events", _async),
)

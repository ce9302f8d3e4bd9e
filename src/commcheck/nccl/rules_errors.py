"""Rules on errors: what came first, on which host and device, and what only follows from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from ipaddress import ip_address
from typing import Final

from commcheck.lazy import regex
from commcheck.model import Cause, Status
from commcheck.nccl import causes, causes_errors, causes_plugins
from commcheck.nccl.case import GOOGLE_TCP, Case
from commcheck.nccl.errors import GPU_REGISTRATION, event_class
from commcheck.nccl.facts import Error
from commcheck.nccl.ruling import Found, Rule, Ruling, other, right, unknown, wrong
from commcheck.report.counts import many
from commcheck.report.ranges import fold_hosts

FLUSHED: Final = "5"
"""Status of a request that was still queued when the connection had already failed."""


def status_of(error: Error) -> str:
    """The completion status; the old and the new way to print it."""
    return error.values.get("status") or error.values.get("old") or ""


def is_secondary(error: Error) -> bool:
    """True for what a failure elsewhere makes a process say."""
    return (
        error.secondary
        or (error.kind == "completion" and status_of(error) == FLUSHED)
        or (error.kind == "async" and event_class(dict(error.values)) == "news")
    )


def first_cause(case: Case) -> Error | None:
    """The error that came first and is no consequence, or None.

    Inside a file the order of lines decides, between files NCCL's own time stamps; without them
    the process that most others lost their connection to.
    """
    firsts: dict[int, Error] = {}
    for error in case.errors:
        if not is_secondary(error) and case.ended(error):
            firsts.setdefault(id(error.proc), error)
    found = list(firsts.values())
    if not found:
        return None
    if all(error.time_s is not None for error in found):
        return min(found, key=lambda error: (error.time_s or 0.0, error.at))
    if len({error.at[0] for error in found}) == 1:
        return min(found, key=lambda error: error.at)
    named = [_host_of(case, peer_of(error)) for error in case.of_kind("closed")]
    return max(found, key=lambda error: (named.count(error.proc.host), error.at[0] * -1))


def peer_of(error: Error) -> str:
    """The peer's name or address without its port."""
    return re.sub(r"<\d+>$", "", error.values.get("peer", ""))


def _host_of(case: Case, peer: str) -> str:
    """The log's name of a peer, which NCCL prints as a full name or as an address."""
    if is_address(peer):
        return next((p.host for p in case.procs if p.oob and p.oob[1] == peer), peer)
    return peer.partition(".")[0]


def is_address(text: str) -> bool:
    """True for an address of IPv4 or IPv6."""
    try:
        ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True


def hosts_of(case: Case, errors: Sequence[Error]) -> tuple[str, ...]:
    """Machines on which errors were printed."""
    return tuple(dict.fromkeys(case.machine(e.proc.host) for e in errors if e.proc.host))


def on(hosts: Sequence[str]) -> str:
    """`` on HOSTS``, or nothing."""
    return f" on {fold_hosts(hosts)}" if hosts else ""


def of_peers(peers: Sequence[str]) -> str:
    """``, of PEERS``, or nothing."""
    return f", of {', '.join(peers[:4])}" if peers else ""


def times(count: int) -> str:
    """`` (N times)``, or nothing."""
    return f" ({count} times)" if count > 1 else ""


def plain(
    rule: str, cause: Cause, *kinds: str, status: Status = Status.FAIL
) -> Callable[[Case], Ruling]:
    """A rule that fails where an error of a kind was printed; silence is only right with INFO."""

    def judge(case: Case) -> Ruling:
        errors = case.of_kind(*kinds)
        if not errors:
            return right()
        root = first_cause(case)
        first = root if root in errors else errors[0]
        hosts = hosts_of(case, errors)
        return wrong(
            Found(
                rule=rule,
                cause=cause,
                status=status,
                reason=f"{short(first)}{on(hosts)}{times(len(errors))}",
                hosts=hosts,
                evidence=tuple(case.where(error.at for error in errors)),
                measured={"events": len(errors)},
                places=places_of(first),
            )
        )

    return judge


def short(error: Error) -> str:
    """The text on one line, its beginning."""
    return " ".join(error.text.split())[:200]


def places_of(error: Error) -> dict[str, object]:
    """What an error knows for the places of remedies."""
    peer = peer_of(error)
    return {
        "pid": error.proc.pid or "",
        "peer": peer,
        "hca": error.values.get("hca") or error.values.get("dev") or "",
        "gid_index": error.values.get("index", ""),
    }


_ONE_HOST: Final = regex(r"172\.17\.0\.1$|127\.|169\.254\.|::1$|fe80:", re.IGNORECASE)
"""Addresses that are reached on the host itself only: Docker's bridge, loopback, link-local."""


def _connect(case: Case) -> Ruling:
    errors = case.of_kind("connect")
    if not errors:
        return right()
    first = errors[0]
    hosts = hosts_of(case, errors)
    peers = sorted({peer_of(e) for e in errors if peer_of(e)})
    inside = bool(peers) and all(map(_ONE_HOST.match, peers)) and len(case.hosts) != 1
    return wrong(
        Found(
            rule="LOG-011",
            cause=causes.WRONG_INTERFACE if inside else causes.CONNECT_FAILED,
            reason=f"{fold_hosts(hosts) or 'a process'} cannot connect to {', '.join(peers[:4])}: "
            f"{first.values.get('why', 'failed')}{times(len(errors))}"
            + (": an address that means another machine on each host" if inside else ""),
            hosts=hosts,
            evidence=tuple(case.where(e.at for e in errors)),
            measured={"peers": peers[:20], "events": len(errors)},
            places=places_of(first),
        )
    )


_LOCKED: Final = plain("LOG-037", causes_errors.MEMLOCK, "verbs-memory")
_OF_GPU: Final = plain("LOG-037", causes_errors.GPU_UNREGISTERED, GPU_REGISTRATION)


def _registration(case: Case) -> Ruling:
    ended = any(case.ended(error) for error in case.of_kind(GPU_REGISTRATION))
    status = Status.FAIL if ended else Status.WARN
    of_gpu = [replace(found, status=status) for found in _OF_GPU(case).found]
    return wrong(*_LOCKED(case).found, *of_gpu)


def _sizes(case: Case) -> Ruling:
    errors = case.of_kind("rank-count", "duplicate-rank")
    differ = [comm for comm in case.comms if len(comm.sizes) > 1]
    if not errors and not differ:
        return right()
    hosts = hosts_of(case, errors)
    places = [error.at for error in errors]
    if errors:
        reason = f"{short(errors[0])}{on(hosts)}"
    else:
        by_size = sorted(differ[0].sizes.items())
        said = ", ".join(
            f"{size} on {fold_hosts(map(case.machine, where))}" for size, where in by_size
        )
        reason = f"ranks of one communicator do not agree how many they are: {said}"
        hosts = tuple(dict.fromkeys(case.machine(h) for _, where in by_size for h in where))
        places = [next(iter(where.values())) for _, where in by_size]
    return wrong(
        Found(
            rule="LOG-015",
            cause=causes.WORLD_SIZE,
            reason=reason,
            hosts=hosts,
            evidence=tuple(case.where(places)),
        )
    )


def _victims(case: Case) -> Ruling:
    errors = [e for e in case.errors if e.secondary]
    if not errors:
        return right()
    peers = sorted({peer_of(e) for e in errors if peer_of(e)})
    if first_cause(case) is not None or len(case.networks) > 1:
        return other(f"{len(errors)} victims of another failure")
    logged = {proc.host for proc in case.procs}
    missing = [peer for peer in peers if _host_of(case, peer) not in logged]
    there = sorted({_host_of(case, peer) for peer in peers} & logged)
    look = (
        f"see how the processes on {fold_hosts(there)} ended, whose log tells no error: "
        "dmesg -T | grep -iE 'oom|xid|segfault', and the scheduler's or kubelet's events"
    )
    lost = many(len({id(error.proc) for error in errors}), "process", "processes")
    return unknown(
        f"{lost} lost a peer{of_peers(peers)}; who failed first is not in the log",
        look
        if there and not missing
        else f"read the log of {', '.join(missing) or 'the peer'} from the same moment",
    )


def _topology(case: Case) -> Ruling:
    errors = case.of_kind("topo-file")
    mine = {proc.host for proc in case.procs}
    simple = {host: at for host, at in case.job.simple_order.items() if host in mine}
    if not errors and not simple:
        return right()
    hosts = hosts_of(case, errors) or tuple(dict.fromkeys(case.machine(h) for h in simple))
    said = short(errors[0]) if errors else "no path was found: NCCL falls back to simple order"
    return wrong(
        Found(
            rule="LOG-044",
            cause=causes_errors.TOPOLOGY_FILE,
            reason=f"{said}{on(hosts)}",
            hosts=hosts,
            evidence=tuple(case.where([*(e.at for e in errors), *simple.values()])),
        )
    )


def _forced(case: Case) -> Ruling:
    if not case.saw("ENV"):
        return unknown("no setting is echoed (ENV subsystem)", SUBSYSTEM_ENV)
    forced = {
        f"{name}={proc.env[name]}"
        for proc in case.procs
        for name in ("NCCL_ALGO", "NCCL_PROTO")
        if name in proc.env
    }
    if not forced:
        return right()
    if (case.network or "").startswith(GOOGLE_TCP):
        return right(f"{', '.join(sorted(forced))}, as the profile of Google's plugin sets it")
    procs = [p for p in case.procs if "NCCL_ALGO" in p.env or "NCCL_PROTO" in p.env]
    hosts = tuple(dict.fromkeys(case.machine(p.host) for p in procs))
    return wrong(
        Found(
            rule="LOG-050",
            cause=causes_errors.FORCED,
            status=Status.WARN,
            reason=f"{', '.join(sorted(forced))} overrides NCCL's own choice{on(hosts)}",
            hosts=hosts,
            evidence=tuple(case.where(p.first for p in procs)),
        )
    )


SUBSYSTEM_ENV: Final = "NCCL_DEBUG=INFO with ENV in NCCL_DEBUG_SUBSYS"

RULES: Final = (
    Rule(
        "LOG-010",
        "an interface was found",
        plain("LOG-010", causes.WRONG_INTERFACE, "no-interface"),
    ),
    Rule("LOG-011", "ranks can connect", _connect),
    Rule("LOG-015", "one size for all ranks", _sizes),
    Rule(
        "LOG-021",
        "NVLink peers reach each other",
        plain("LOG-021", causes.P2P_REFUSED, "p2p-nvlink", "p2p-enable"),
    ),
    Rule("LOG-037", "memory can be registered", _registration),
    Rule(
        "LOG-039",
        "shared memory is large enough",
        plain("LOG-039", causes_errors.SHM, "shm-size", "shm-attach"),
    ),
    Rule(
        "LOG-040", "one rank a GPU", plain("LOG-040", causes_errors.DUPLICATE_GPU, "duplicate-gpu")
    ),
    Rule(
        "LOG-042",
        "ranks call the same collectives",
        plain("LOG-042", causes_errors.MISMATCH, "truncated"),
    ),
    Rule("LOG-044", "the topology is known", _topology),
    Rule("LOG-045", "NVLink between hosts works", plain("LOG-045", causes_errors.MNNVL, "mnnvl")),
    Rule("LOG-050", "nothing overrides NCCL's choice", _forced),
    Rule(
        "LOG-057",
        "the provider's plugin takes the settings",
        plain("LOG-057", causes_plugins.SETTING_REFUSED, "setting"),
    ),
    Rule("LOG-058", "EFA's peers answer", plain("LOG-058", causes_plugins.EFA_PEER, "efa-peer")),
    Rule("LOG-054", "no victims of another failure", _victims),
)

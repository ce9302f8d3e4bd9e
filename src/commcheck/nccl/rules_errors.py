"""Rules on errors: what came first, on which host and device, and what only follows from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from commcheck.model import Cause, Status
from commcheck.nccl import causes, causes_errors, causes_plugins
from commcheck.nccl.case import GOOGLE_TCP, Case
from commcheck.nccl.errors import event_class
from commcheck.nccl.facts import Error, Process
from commcheck.nccl.ruling import Found, Rule, Ruling, other, right, unknown, wrong
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
    named = [peer_of(error) for error in case.of_kind("closed")]
    return max(found, key=lambda error: (named.count(error.proc.host), error.at[0] * -1))


def peer_of(error: Error) -> str:
    """The peer's name or address without its port."""
    return re.sub(r"<\d+>$", "", error.values.get("peer", ""))


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
        first = errors[0]
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


def _connect(case: Case) -> Ruling:
    errors = case.of_kind("connect")
    if not errors:
        return right()
    first = errors[0]
    hosts = hosts_of(case, errors)
    peers = sorted({peer_of(e) for e in errors if peer_of(e)})
    return wrong(
        Found(
            rule="LOG-011",
            cause=causes.CONNECT_FAILED,
            reason=f"{fold_hosts(hosts) or 'a process'} cannot connect to {', '.join(peers[:4])}: "
            f"{first.values.get('why', 'failed')}{times(len(errors))}",
            hosts=hosts,
            evidence=tuple(case.where(e.at for e in errors)),
            measured={"peers": peers[:20], "events": len(errors)},
            places=places_of(first),
        )
    )


def _version_text(code: str) -> str:
    number = int(code)
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def _versions(case: Case) -> Ruling:
    errors = case.of_kind("version")
    comm = case.world
    few: list[Process] = []
    printed: dict[tuple[int, int, int], list[Process]] = {}
    for proc in case.world_procs:
        if proc.version:
            printed.setdefault(proc.version, []).append(proc)
    if errors:
        values = errors[0].values
        hosts = _hosts_of_ranks(case, errors) or hosts_of(case, errors)
        reason = (
            f"NCCL versions differ: rank {values['a']} has {_version_text(values['va'])}, "
            f"rank {values['b']} {_version_text(values['vb'])}"
        )
    elif len(printed) > 1:
        few = min(printed.values(), key=len)
        hosts = tuple(dict.fromkeys(case.machine(proc.host) for proc in few))
        said = ", ".join(f"{'.'.join(map(str, v))} on {len(h)} ranks" for v, h in printed.items())
        reason = f"NCCL versions differ in one communicator: {said}"
    elif printed or comm is not None or case.job.banners:
        return (
            right()
            if printed
            else unknown(
                "no version of these processes is in the log (before 2.22 only rank 0 prints it)",
                "NCCL_DEBUG=VERSION on every rank, NCCL 2.22 or newer",
            )
        )
    else:
        return unknown("no version in the log", "NCCL_DEBUG=VERSION on every rank")
    victims = case.of_kind("closed")
    return wrong(
        Found(
            rule="LOG-016",
            cause=causes.VERSIONS,
            reason=reason,
            hosts=hosts,
            evidence=tuple(case.where([*(e.at for e in errors), *(proc.first for proc in few)])),
            measured={"events": len(errors), "victims": len(victims)},
            places=places_of(errors[0]) if errors else {},
        )
    )


def _hosts_of_ranks(case: Case, errors: Sequence[Error]) -> tuple[str, ...]:
    """Hosts of the ranks that run the older library."""
    comm = case.world
    old = {
        int(e.values["a"] if int(e.values["va"]) < int(e.values["vb"]) else e.values["b"])
        for e in errors
    }
    named = (case.rank_host(comm, rank) for rank in sorted(old)) if comm else ()
    return tuple(dict.fromkeys(host for host in named if host))


def _driver(case: Case) -> Ruling:
    errors = case.of_kind("driver")
    old = [
        proc
        for proc in case.procs
        if proc.driver and proc.cuda_built and proc.cuda_built[0] > proc.driver // 1000
    ]
    if not errors and not old:
        if any(proc.driver for proc in case.procs):
            return right()
        return unknown("no driver version in the log (2.13 and newer)", "NCCL_DEBUG=INFO")
    hosts = hosts_of(case, errors) or tuple(dict.fromkeys(case.machine(p.host) for p in old))
    if old and old[0].cuda_built and old[0].driver:
        built, driver = old[0].cuda_built, old[0].driver
        reason = (
            f"NCCL is built for CUDA {built[0]}.{built[1]}, the driver of {fold_hosts(hosts)} "
            f"supports {driver // 1000}.{driver % 1000 // 10}"
        )
    else:
        reason = f"{short(errors[0])}{on(hosts)}"
    return wrong(
        Found(
            rule="LOG-017",
            cause=causes.DRIVER_OLD,
            reason=reason,
            hosts=hosts,
            evidence=tuple(case.where([*(e.at for e in errors), *(p.first for p in old)])),
        )
    )


def _sizes(case: Case) -> Ruling:
    errors = case.of_kind("rank-count", "duplicate-rank")
    differ = [comm for comm in case.comms if len(comm.sizes) > 1]
    if not errors and not differ:
        return right()
    reason = (
        short(errors[0])
        if errors
        else f"ranks of one communicator say {sorted(differ[0].sizes)} ranks"
    )
    hosts = hosts_of(case, errors)
    return wrong(
        Found(
            rule="LOG-015",
            cause=causes.WORLD_SIZE,
            reason=f"{reason}{on(hosts)}",
            hosts=hosts,
            evidence=tuple(case.where(e.at for e in errors)),
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
    missing = [peer for peer in peers if peer not in logged]
    return unknown(
        f"{len(errors)} processes lost their peer{of_peers(peers)}; "
        "who failed first is not in the log",
        f"read the log of {', '.join(missing or peers) or 'the peer'} from the same moment",
    )


def _topology(case: Case) -> Ruling:
    errors = case.of_kind("topo-file")
    simple = case.job.simple_order
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
    Rule("LOG-016", "one NCCL version", _versions),
    Rule("LOG-017", "the driver is new enough", _driver),
    Rule(
        "LOG-021",
        "NVLink peers reach each other",
        plain("LOG-021", causes.P2P_REFUSED, "p2p-nvlink", "p2p-enable"),
    ),
    Rule(
        "LOG-037",
        "memory can be registered",
        plain("LOG-037", causes_errors.MEMLOCK, "verbs-memory"),
    ),
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

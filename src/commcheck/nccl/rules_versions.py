"""Rules on what is too old, or not the same everywhere: LOG-016 and LOG-017."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from commcheck.nccl import causes
from commcheck.nccl.case import Case
from commcheck.nccl.facts import Error, Process
from commcheck.nccl.rules_errors import hosts_of, on, places_of, short
from commcheck.nccl.ruling import Found, Rule, Ruling, right, unknown, wrong
from commcheck.report.counts import many
from commcheck.report.ranges import fold_hosts


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
        counts = sorted(map(len, printed.values()))
        # Of two halves none can be called the odd one.
        even = counts[0] == counts[-1]
        few = [p for procs in printed.values() if even or len(procs) < counts[-1] for p in procs]
        hosts = tuple(dict.fromkeys(case.machine(proc.host) for proc in few))
        said = ", ".join(
            f"{'.'.join(map(str, version))} on {many(len(procs), 'rank')} of "
            f"{fold_hosts(case.machine(proc.host) for proc in procs)}"
            for version, procs in sorted(printed.items())
        )
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


RULES: Final = (
    Rule("LOG-016", "one NCCL version", _versions),
    Rule("LOG-017", "the driver is new enough", _driver),
)

"""Rules on a whole job: ENV-001, ENV-058, ENV-059, ENV-061 and HENV-002."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from commcheck.model import Status
from commcheck.nccl.environment import causes
from commcheck.nccl.environment.model import Case, Environment
from commcheck.nccl.environment.names import is_foreign
from commcheck.nccl.environment.rule import UNSET, EnvRule
from commcheck.nccl.environment.rules_network import HOST
from commcheck.nccl.ruling import Found, Ruling, other, right, unknown, wrong

_EXEMPT: Final = frozenset(
    f"NCCL_{name}"
    for name in [
        "DEBUG",
        "DEBUG_SUBSYS",
        "DEBUG_FILE",
        "DEBUG_TIMESTAMP_FORMAT",
        "DEBUG_TIMESTAMP_LEVELS",
        "TOPO_DUMP_FILE",
        "GRAPH_DUMP_FILE",
        "HOSTID",
        "RAS_ADDR",
    ]
) | {"HCCL_IF_IP", "HCCL_LOGIC_SUPERPOD_ID"}

_BY_HOST: Final = frozenset(
    ["NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "HCCL_SOCKET_IFNAME", "NCCL_TOPO_FILE"]
)
"""Names that may differ where hosts do."""

_EQUAL: Final = [
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_BUFFSIZE",
    "NCCL_MIN_",
    "NCCL_MAX_",
    "NCCL_NTHREADS",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_TC",
    "NCCL_IB_SL",
    "NCCL_CROSS_NIC",
    "NCCL_NET",
    "NCCL_COLLNET_ENABLE",
    "NCCL_P2P_",
    "NCCL_SHM_DISABLE",
    "NCCL_CUMEM_",
    "NCCL_NVLS_",
    "NCCL_PXN_",
    "HCCL_",
]
"""Beginnings of names that all ranks must set alike; ranks negotiate with them."""


def _differ(case: Case) -> Ruling:
    return _differences(case, "NCCL_")


def _hccl_differ(case: Case) -> Ruling:
    return _differences(case, "HCCL_")


def _differences(case: Case, start: str) -> Ruling:
    jobs: dict[tuple[str, str], list[Environment]] = defaultdict(list)
    for one in case.ranks:
        if one.kind != "script":
            jobs[one.kind, one.job].append(one)
    if max((sum(len(one.who) for one in job) for job in jobs.values()), default=0) < 2:
        return unknown(
            "the environment of one rank only is known",
            "give the environments or logs of all ranks, or ask all hosts: commcheck run",
        )
    found: list[Found] = []
    for _, alike in sorted(jobs.items(), key=lambda item: item[0]):
        for name in sorted({name for one in alike for name in one.settings}):
            if name.startswith(start) and not _may_differ(name, alike):
                found += _difference(name, alike)
    return wrong(*found)


def _may_differ(name: str, ranks: list[Environment]) -> bool:
    if name in _EXEMPT or is_foreign(name):
        return True
    return name in _BY_HOST and len({one.host for one in ranks}) > 1


def _difference(name: str, ranks: list[Environment]) -> Iterable[Found]:
    holders: dict[str, list[Environment]] = defaultdict(list)
    for one in ranks:
        value = one.get(name)
        if value is None and not one.is_unset(name):
            continue  # absent is not unset: NCCL echoes a parameter when it first reads it
        holders["(unset)" if value is None else value].append(one)
    if len(holders) < 2:
        return
    is_firm = name.startswith(tuple(_EQUAL)) and name not in _BY_HOST
    if name.startswith("NCCL_NET") and name != "NCCL_NET":
        is_firm = False
    parts = [
        f"{value} on {_some([who for one in ones for who in one.who])}"
        for value, ones in sorted(holders.items(), key=lambda item: -len(item[1]))
    ]
    counts = {value: sum(len(one.who) for one in ones) for value, ones in holders.items()}
    most = [value for value, count in counts.items() if count == max(counts.values())]
    # Two halves of one size: nobody can tell which of them is right.
    odd = [ones for value, ones in holders.items() if len(most) > 1 or value not in most]
    hosts = {one.host for ones in odd for one in ones if one.host}
    yield Found(
        rule="ENV-001" if name.startswith("NCCL_") else "HENV-002",
        cause=causes.RANKS_DIFFER,
        reason=f"{name} differs between ranks: {'; '.join(parts[:4])}",
        status=Status.FAIL if is_firm else Status.WARN,
        hosts=tuple(sorted(hosts)),
        measured={"variable": name, "values": sorted(holders)[:20]},
    )


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _host_id(case: Case) -> Ruling:
    hosts: dict[str, set[str]] = defaultdict(set)
    for one in case.ranks:
        value = one.get("NCCL_HOSTID")
        if value is not None:
            hosts[value].add(one.host)
    if not hosts:
        return other(UNSET)
    if all(one.host == "" for one in case.ranks):
        return unknown("which environment is of which host is not known", HOST)
    return wrong(
        *(
            Found(
                rule="ENV-058",
                cause=causes.IDENTITY,
                reason=f"NCCL_HOSTID={value} on {len(names)} hosts: NCCL takes them for one",
                hosts=tuple(sorted(names)),
            )
            for value, names in sorted(hosts.items())
            if len(names - {""}) > 1
        )
    )


def _libraries(case: Case) -> Ruling:
    holders: dict[str, set[str]] = defaultdict(set)
    for one in case.ranks:
        loaded = (one.get("LD_PRELOAD") or "").replace(" ", ":").split(":")
        holders[next((path for path in loaded if "libnccl.so" in path), "")].add(one.host)
    if set(holders) <= {""}:
        return other("no NCCL library is preloaded")
    if len(set().union(*holders.values())) < 2:
        return unknown("the environment of one host only is known", HOST)
    if len(holders) == 1:
        return right()
    said = "; ".join(
        f"{path or 'none'} on {_some(sorted(names))}" for path, names in holders.items()
    )
    reason = f"LD_PRELOAD differs between hosts: {said}"
    return wrong(Found(rule="ENV-059", cause=causes.LIBRARIES, reason=reason))


def _ras_ports(case: Case) -> Ruling:
    jobs: dict[tuple[str, str], set[str | None]] = defaultdict(set)
    for one in case.ranks:
        job = f"{one.get('MASTER_ADDR')}:{one.get('MASTER_PORT')}"
        jobs[(one.host, one.get("NCCL_RAS_ADDR") or "localhost:28028")].add(job)
    shared = sorted(host for (host, _), names in jobs.items() if len(names) > 1)
    if shared:
        return right(
            f"several jobs on {', '.join(shared[:4])} share one RAS port: it answers for one"
        )
    return right()


DIFFERENCES: Final[tuple[EnvRule, ...]] = (
    EnvRule("ENV-001", "ranks have the same settings", _differ),
    EnvRule("HENV-002", "ranks have the same settings of HCCL", _hccl_differ),
)
RULES: Final[tuple[EnvRule, ...]] = (
    *DIFFERENCES,
    EnvRule("ENV-058", "host ids differ", _host_id),
    EnvRule("ENV-059", "hosts load the same library", _libraries),
    EnvRule("ENV-061", "jobs have RAS ports of their own", _ras_ports),
)

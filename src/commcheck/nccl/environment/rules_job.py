"""Rules on a whole job, ENV-001, 058, 059, 061, and on HCCL, HENV-001 to HENV-010."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from commcheck.model import Status
from commcheck.nccl.environment import causes
from commcheck.nccl.environment.model import CONF, ECHO, Case, Environment, HostFacts
from commcheck.nccl.environment.names import is_foreign
from commcheck.nccl.environment.rule import UNSET, EnvRule, each, fail, warn
from commcheck.nccl.environment.rules_network import INVENTORY
from commcheck.nccl.environment.values import number
from commcheck.nccl.environment.vendor import HCCL_RANGES, HCCL_WORDS
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
        if value is None and one.kind == ECHO:
            continue  # a parameter is echoed when it is first read: absent is not unset
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
        return unknown("which environment is of which host is not known", INVENTORY)
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
        return unknown("the environment of one host only is known", INVENTORY)
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


# --- HCCL ---------------------------------------------------------------------------------------


def _hccl_range(one: Environment, _host: HostFacts) -> Ruling:
    found = []
    for name, (low, high) in HCCL_RANGES.items():
        value = one.get(name)
        if value is None:
            continue
        read = number(value)
        if not read.is_plain or not low <= read.value <= high:
            reason = f"{one.show(name)}, want a number from {low} to {high}"
            found.append(fail(causes.HCCL_VALUE, reason))
    for name, words in HCCL_WORDS.items():
        value = one.get(name)
        if value is not None and value not in words:
            found.append(fail(causes.HCCL_VALUE, f"{one.show(name)}, want {', '.join(words)}"))
    return wrong(*found)


DEFAULT_TC: Final = 132
DEFAULT_SL: Final = 4
"""HCCL_RDMA_TC and HCCL_RDMA_SL where they are unset (CANN): DSCP 33, priority 4."""


def _hccl_mark(one: Environment, host: HostFacts) -> Ruling:
    tc, level = one.int("HCCL_RDMA_TC"), one.int("HCCL_RDMA_SL")
    if tc is None and level is None and (host.npu_pfc is None or one.kind == CONF):
        return other(UNSET)
    if one.partial and (tc is None or level is None):
        return unknown("only a part of the environment is known", "give /proc/PID/environ")
    tclass = DEFAULT_TC if tc is None else tc
    priority = DEFAULT_SL if level is None else level
    shown = f"{one.show('HCCL_RDMA_TC')} and {one.show('HCCL_RDMA_SL')}"
    if tclass % 4:
        reason = f"{one.show('HCCL_RDMA_TC')} is no multiple of 4: it is the DSCP times 4"
        return wrong(fail(causes.HCCL_VALUE, reason))
    if tclass >> 5 != priority:
        reason = (
            f"{shown}: DSCP {tclass >> 2} is priority {tclass >> 5}, the service level {priority}"
        )
        return wrong(fail(causes.HCCL_VALUE, reason))
    if host.lossless is False:
        return right()
    if host.npu_pfc is None:
        return unknown(f"{shown}: PFC of the NPU's NIC is not known", "hccn_tool -i 0 -pfc -g")
    if priority in host.npu_pfc:
        return right()
    on = ", ".join(map(str, sorted(host.npu_pfc))) or "none"
    chain = f"TC {tclass} is DSCP {tclass >> 2} and priority {priority}"
    reason = f"{shown}: {chain}, and PFC of the NPU's NIC is on for {on}"
    return wrong(fail(causes.HCCL_VALUE, reason))


def _hccl_timeouts(one: Environment, _host: HostFacts) -> Ruling:
    connect, execute = one.int("HCCL_CONNECT_TIMEOUT"), one.int("HCCL_EXEC_TIMEOUT")
    found = []
    if connect is not None and execute != 0 and connect >= (1836 if execute is None else execute):
        reason = f"{one.show('HCCL_CONNECT_TIMEOUT')} is not below {one.show('HCCL_EXEC_TIMEOUT')}"
        found.append(warn(causes.HCCL_VALUE, reason))
    return wrong(*found)


def _hccl_retry(one: Environment, _host: HostFacts) -> Ruling:
    found = []
    for name, least in (("HCCL_RDMA_TIMEOUT", 18), ("HCCL_RDMA_RETRY_CNT", 7)):
        value = one.int(name)
        if value is not None and value < least:
            reason = f"{one.show(name)} gives up early, want {least} or more"
            found.append(warn(causes.HCCL_VALUE, reason))
    return wrong(*found)


def _hccl_intra(one: Environment, _host: HostFacts) -> Ruling:
    pcie, roce = one.int("HCCL_INTRA_PCIE_ENABLE"), one.int("HCCL_INTRA_ROCE_ENABLE")
    if not roce:
        return right()
    if pcie == 1:
        reason = f"{one.show('HCCL_INTRA_PCIE_ENABLE')} and {one.show('HCCL_INTRA_ROCE_ENABLE')}"
        return wrong(fail(causes.HCCL_VALUE, f"{reason}: never both"))
    reason = f"{one.show('HCCL_INTRA_ROCE_ENABLE')} sends traffic of one server over RoCE"
    return wrong(warn(causes.HCCL_VALUE, reason))


def _hccl_whitelist(one: Environment, _host: HostFacts) -> Ruling:
    if one.int("HCCL_WHITELIST_DISABLE") != 0:
        return right() if one.get("HCCL_WHITELIST_DISABLE") else other(UNSET)
    if one.get("HCCL_WHITELIST_FILE") is None and not one.partial:
        reason = f"{one.show('HCCL_WHITELIST_DISABLE')} without HCCL_WHITELIST_FILE"
        return wrong(fail(causes.HCCL_VALUE, f"{reason}: no host is let in"))
    return unknown("whether the list holds all hosts is not known", "read HCCL_WHITELIST_FILE")


def _hccl_interface(one: Environment, host: HostFacts) -> Ruling:
    if one.partial or not any(name.startswith("HCCL_") for name in one.settings):
        return other("nothing of HCCL is set")
    if one.get("HCCL_IF_IP") or one.get("HCCL_SOCKET_IFNAME"):
        return right()
    if host.netdevs is None:
        return unknown("the host's interfaces are not known", INVENTORY)
    near = [dev for dev in host.netdevs if not dev.startswith(("lo", "docker", "virbr", "veth"))]
    if len(near) < 2:
        return right()
    reason = f"HCCL_SOCKET_IFNAME is unset, and the host has {', '.join(near[:6])}"
    return wrong(warn(causes.INTERFACE, reason))


_AIDS: Final = (
    ("HCCL_ALGO", ()),
    ("HCCL_DETERMINISTIC", ("false",)),
    ("HCCL_DIAGNOSE_ENABLE", ("0",)),
    ("HCCL_ENTRY_LOG_ENABLE", ("0",)),
)


def _hccl_aids(one: Environment, _host: HostFacts) -> Ruling:
    return wrong(
        *(
            warn(causes.HCCL_TUNING, f"{one.show(name)} slows every step, want it unset")
            for name, idle in _AIDS
            if (value := one.get(name)) is not None and value.lower() not in idle
        )
    )


def _ascend_level(one: Environment, _host: HostFacts) -> Ruling:
    level = one.int("ASCEND_GLOBAL_LOG_LEVEL")
    if level == 4:
        return unknown(
            f"{one.show('ASCEND_GLOBAL_LOG_LEVEL')} writes no evidence of a fault",
            "ASCEND_GLOBAL_LOG_LEVEL=3",
        )
    if level in (0, 1):
        reason = f"{one.show('ASCEND_GLOBAL_LOG_LEVEL')} slows every step, want 3"
        return wrong(warn(causes.HCCL_TUNING, reason))
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
    each("HENV-001", "HCCL values are legal", _hccl_range),
    each("HENV-003", "HCCL's mark and service level agree", _hccl_mark, weighty=True),
    each("HENV-004", "connecting ends before executing", _hccl_timeouts),
    each("HENV-005", "HCCL resends long enough", _hccl_retry),
    each("HENV-006", "servers keep traffic inside", _hccl_intra),
    each("HENV-007", "the whitelist lets hosts in", _hccl_whitelist),
    each("HENV-008", "HCCL's interface is named", _hccl_interface),
    each("HENV-009", "no HCCL debugging aid is on", _hccl_aids),
    each("HENV-010", "Ascend logs errors", _ascend_level),
)

"""Rules on variables of HCCL, and on its rank table: HENV-001, HENV-003 to 010, 012 to 014.

Ranges and defaults: CANN environment variable reference (hiascend.com, 8.0 to 9.0, envref_07).
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from commcheck.model import Cause
from commcheck.nccl.environment import causes, causes_given
from commcheck.nccl.environment.model import CONF, Case, Environment, HostFacts
from commcheck.nccl.environment.names import nearest
from commcheck.nccl.environment.ranktable import RankTable
from commcheck.nccl.environment.rule import UNSET, EnvRule, each, fail, warn
from commcheck.nccl.environment.rules_network import HOST
from commcheck.nccl.environment.values import number
from commcheck.nccl.environment.vendor import (
    HCCL_ALGORITHMS,
    HCCL_ANY_CASE,
    HCCL_LEVELS,
    HCCL_OPERATIONS,
    HCCL_RANGES,
    HCCL_WORDS,
)
from commcheck.nccl.ruling import Found, Ruling, other, right, unknown, wrong


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
        if value is not None and name in HCCL_ANY_CASE:
            value = next((word for word in words if word.lower() == value.lower()), value)
        if value is not None and value not in words:
            found.append(fail(causes.HCCL_VALUE, f"{one.show(name)}, want {', '.join(words)}"))
    return wrong(*found)


DEFAULT_TC: Final = 132
DEFAULT_SL: Final = 4
"""HCCL_RDMA_TC and HCCL_RDMA_SL where they are unset (CANN): DSCP 33, priority 4."""


_HCCL_MARK: Final = ("HCCL_RDMA_TC", "HCCL_RDMA_SL")


def _hccl_mark(one: Environment, host: HostFacts) -> Ruling:
    tc, level = one.int("HCCL_RDMA_TC"), one.int("HCCL_RDMA_SL")
    if tc is None and level is None and (host.npu_pfc is None or one.kind == CONF):
        return other(UNSET)
    if any(one.get(name) is None and not one.is_unset(name) for name in _HCCL_MARK):
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


AIV_MOST_S: Final = 1091
"""The longest HCCL_EXEC_TIMEOUT of Atlas A2 and A3 where vector cores run the collectives; what is
longer, and 0, is taken as this (envref_07_0078). Ascend 950 has no such end."""

RDMA_TIMEOUT_MOST: Final = 20
"""HCCL_RDMA_TIMEOUT of Atlas A2 and A3; the other products take 24 (envref_07_0091)."""

PRODUCT: Final = "npu-smi info names the product"


def _hccl_timeouts(one: Environment, _host: HostFacts) -> Ruling:
    """Time-outs do not depend on each other: a job of many ranks needs long ones for both."""
    execute = one.int("HCCL_EXEC_TIMEOUT")
    if execute is None or one.get("HCCL_OP_EXPANSION_MODE") != "AIV":
        return right()
    if 0 < execute <= AIV_MOST_S:
        return right()
    shown = f"{one.show('HCCL_EXEC_TIMEOUT')} with {one.show('HCCL_OP_EXPANSION_MODE')}"
    return unknown(f"{shown}: HCCL of Atlas A2 and A3 waits {AIV_MOST_S} s at most", PRODUCT)


def _hccl_resend(one: Environment, _host: HostFacts) -> Ruling:
    value = one.int("HCCL_RDMA_TIMEOUT")
    if value is None:
        return other(UNSET)
    if not RDMA_TIMEOUT_MOST < value <= HCCL_RANGES["HCCL_RDMA_TIMEOUT"][1]:
        return right()
    reason = f"{one.show('HCCL_RDMA_TIMEOUT')}: Atlas A2 and A3 take {RDMA_TIMEOUT_MOST} at most"
    return unknown(f"{reason}, other products 24", PRODUCT)


def _hccl_algorithm(one: Environment, _host: HostFacts) -> Ruling:
    """``level0:NA;level1:NHR``, or ``allreduce=level0:NA;level1:ring/alltoall=...``."""
    told = one.get("HCCL_ALGO")
    if told is None:
        return other(UNSET)
    shown = one.show("HCCL_ALGO")
    parts = told.replace(" ", "").split("/")  # HCCL takes blanks out
    named = [part.partition("=") for part in parts if "=" in part]
    if len(parts) > 1 and len(named) < len(parts):
        reason = f"{shown}: algorithms of one operation and of all are mixed"
        return wrong(fail(causes.HCCL_VALUE, reason))
    strange = []
    for operation, _, levels in named or [("", "", parts[0])]:
        if operation and operation not in HCCL_OPERATIONS:
            strange.append((operation, "operation", HCCL_OPERATIONS))
        seen: set[str] = set()
        for part in levels.split(";"):
            level, colon, algorithm = part.partition(":")
            if not colon or level not in HCCL_LEVELS or level in seen:
                reason = f"{shown}: want each of {', '.join(HCCL_LEVELS)} once, not {level!r}"
                return wrong(fail(causes.HCCL_VALUE, reason))
            seen.add(level)
            if algorithm not in HCCL_ALGORITHMS:
                strange.append((algorithm, "algorithm", HCCL_ALGORITHMS))
    for word, what, known in strange:
        near = nearest(word, known)
        if near or not word:
            hint = f": did you mean {near}?" if near else ""
            return wrong(fail(causes.HCCL_VALUE, f"{shown}: no {what} {word!r}{hint}"))
    if strange:
        words = ", ".join(word for word, _, _ in strange)
        return unknown(f"{shown}: whether this HCCL knows {words} is not known", "HCCL's run/plog")
    return right(f"{shown}: HCCL does not choose the algorithm by itself")


def _hccl_retry(one: Environment, _host: HostFacts) -> Ruling:
    found = []
    for name, least in (("HCCL_RDMA_TIMEOUT", 18), ("HCCL_RDMA_RETRY_CNT", 7)):
        value = one.int(name)
        if value is not None and value < least:
            reason = f"{one.show(name)} gives up early, want {least} or more"
            found.append(warn(causes.HCCL_VALUE, reason))
    return wrong(*found)


_INTRA: Final = ("HCCL_INTRA_PCIE_ENABLE", "HCCL_INTRA_ROCE_ENABLE")


def _hccl_intra(one: Environment, _host: HostFacts) -> Ruling:
    pcie, roce = (one.int(name) for name in _INTRA)
    for name, other_name in (_INTRA, _INTRA[::-1]):
        if one.int(name) != 0 or one.get(other_name) is not None:
            continue
        if not one.is_unset(other_name):
            return unknown("only a part of the environment is known", "give /proc/PID/environ")
        # HCCL asks for both where one is off (gitcode.com/cann/hccl, ParseIntraLinkType).
        reason = f"{one.show(name)} without {other_name}: HCCL does not start (EI0001)"
        return wrong(fail(causes.HCCL_VALUE, f"{reason}; set both, or neither"))
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
    if one.is_unset("HCCL_WHITELIST_FILE"):
        reason = f"{one.show('HCCL_WHITELIST_DISABLE')} without HCCL_WHITELIST_FILE"
        return wrong(fail(causes.HCCL_VALUE, f"{reason}: no host is let in"))
    return unknown("whether the list holds all hosts is not known", "read HCCL_WHITELIST_FILE")


def _hccl_interface(one: Environment, host: HostFacts) -> Ruling:
    if one.partial or not any(name.startswith("HCCL_") for name in one.settings):
        return other("nothing of HCCL is set")
    if one.get("HCCL_IF_IP") or one.get("HCCL_SOCKET_IFNAME"):
        return right()
    if host.netdevs is None:
        return unknown("the host's interfaces are not known", HOST)
    near = [dev for dev in host.netdevs if not dev.startswith(("lo", "docker", "virbr", "veth"))]
    if len(near) < 2:
        return right()
    reason = f"HCCL_SOCKET_IFNAME is unset, and the host has {', '.join(near[:6])}"
    return wrong(warn(causes.INTERFACE, reason))


_AIDS: Final = (
    ("HCCL_DETERMINISTIC", ("false",)),
    ("HCCL_DIAGNOSE_ENABLE", ("0",)),
    ("HCCL_ENTRY_LOG_ENABLE", ("0",)),
    ("ASCEND_LAUNCH_BLOCKING", ("0",)),
)
"""By name: values under which it does nothing. The last one is torch_npu's: each operator is waited
for (Ascend Extension for PyTorch, environment variables)."""


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


def _rank_table(case: Case) -> Ruling:
    if not case.tables:
        return other("no rank table is given")
    planned = [table for table in case.tables if table.planned and table.is_begun]
    if planned == list(case.tables):
        where = planned[0].where
        return unknown(
            f"{where} is what is applied: MindCluster fills it in when the job's pods have NPUs",
            "give that of the cluster (kubectl get configmap -o yaml), or hccl.json of a pod",
        )
    begun = (
        _of_table(table, causes_given.RANK_TABLE_BEGUN, "MindCluster has not filled it in yet")
        for table in case.tables
        if table.is_begun and table not in planned
    )
    faults = (
        _of_table(table, causes.RANK_TABLE, fault)
        for table in case.tables
        for fault in islice(table.faults, _FAULTS_MOST)
    )
    return wrong(*begun, *faults)


def _of_table(table: RankTable, cause: Cause, what: str) -> Found:
    reason = f"{table.where}: {what}"
    return Found(rule="HENV-014", cause=cause, reason=reason, evidence=(table.where,))


_FAULTS_MOST: Final = 20
"""Of one table that many are told."""


RULES: Final[tuple[EnvRule, ...]] = (
    each("HENV-001", "HCCL values are legal", _hccl_range),
    each("HENV-003", "HCCL's mark and service level agree", _hccl_mark, weighty=True),
    each("HENV-004", "HCCL waits as long as it is told", _hccl_timeouts, weighty=True),
    each("HENV-005", "HCCL resends long enough", _hccl_retry),
    each("HENV-006", "servers keep traffic inside", _hccl_intra),
    each("HENV-007", "the whitelist lets hosts in", _hccl_whitelist),
    each("HENV-008", "HCCL's interface is named", _hccl_interface),
    each("HENV-009", "no HCCL debugging aid is on", _hccl_aids),
    each("HENV-010", "Ascend logs errors", _ascend_level),
    each("HENV-012", "HCCL_ALGO is one that HCCL takes", _hccl_algorithm, weighty=True),
    EnvRule("HENV-014", "the rank table is sound", _rank_table),
    each("HENV-013", "the product takes HCCL's resend time", _hccl_resend, weighty=True),
)

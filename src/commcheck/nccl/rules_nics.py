"""Rules on the NICs that NCCL lists: LOG-007 and LOG-008."""

from __future__ import annotations

from collections import Counter
from typing import Final

from commcheck.model import Status
from commcheck.nccl import causes, causes_plugins
from commcheck.nccl.case import Case
from commcheck.nccl.facts import Nic, Process
from commcheck.nccl.rules_errors import hosts_of, on, short
from commcheck.nccl.rules_network import not_over_network
from commcheck.nccl.ruling import INFO_EVERYWHERE, Found, Rule, Ruling, unknown, wrong
from commcheck.report.counts import many
from commcheck.report.ranges import fold_hosts


def _by_machine(case: Case) -> dict[str, tuple[Process, tuple[Nic, ...]]]:
    """The longest NIC list printed on each machine."""
    lists: dict[str, tuple[Process, tuple[Nic, ...]]] = {}
    for proc in case.procs:
        if proc.nics is not None and (proc.nics or proc.no_device is None):
            name = case.machine(proc.host)
            if name not in lists or len(proc.nics) > len(lists[name][1]):
                lists[name] = (proc, proc.nics)
    return lists


def _nic_lists(case: Case) -> Ruling:
    if gated := not_over_network(case):
        return gated
    if case.over_efa:
        return _efa_devices(case)
    lists = _by_machine(case)
    if not lists:
        return unknown("no line lists the NICs", INFO_EVERYWHERE)
    found = []
    apart: dict[str, int] = {}
    ranks = _ranks_by_machine(case)
    for name, (proc, nics) in lists.items():
        # A job that asked for fewer GPUs of a host may see fewer NICs there.
        alike = [len(each) for peer, (_, each) in lists.items() if ranks[peer] == ranks[name]]
        usual, times = Counter(alike).most_common(1)[0]
        told = case.expected(proc.host).nics
        ports = sum(nic.name.count("+") + 1 for nic in nics)
        if told is not None:
            seen = {part for nic in nics for part in nic.name.split("+")}
            short = [rail for rail in told if rail.partition("/")[0] not in seen]
            reason = f"NCCL on {name} does not see {', '.join(short)} of the inventory's rails"
            bad = bool(short) and ports < len(told) and ranks[name] >= len(told)
        else:
            if times * 2 <= len(alike):
                apart[name] = len(nics)
            bad = len(alike) >= 3 and times * 2 > len(alike) and len(nics) < usual
            seen_here = many(len(nics), "NIC")
            reason = f"NCCL on {name} sees {seen_here}, {times} of its peers {usual}"
        if bad:
            found.append(
                Found(
                    rule="LOG-007",
                    cause=causes.NIC_LIST,
                    reason=reason,
                    hosts=(name,),
                    evidence=tuple(case.where([proc.nics_at])),
                    measured={"nics_seen": ports},
                )
            )
    return (
        wrong(*found[:20]) if found or not apart else _no_majority(apart, "NIC", "commcheck_nics")
    )


def _no_majority(counts: dict[str, int], noun: str, key: str) -> Ruling:
    """Hosts that differ, and none of them is known to be right."""
    by_count: dict[int, list[str]] = {}
    for name, count in counts.items():
        by_count.setdefault(count, []).append(name)
    said = ", ".join(
        f"{many(count, noun)} on {fold_hosts(names)}" for count, names in sorted(by_count.items())
    )
    return unknown(
        f"NCCL sees {said}, and most hosts do not tell which is right",
        f"{'declare ' + key + ' with -i INVENTORY, or ' if key else ''}compare ibv_devinfo -l on "
        f"{fold_hosts(by_count[min(by_count)])} and {fold_hosts(by_count[max(by_count)])}",
        doubt=True,
    )


def _ranks_by_machine(case: Case) -> Counter[str]:
    members = case.world.members.values() if case.world else ()
    return Counter(case.machine(member.proc.host) for member in members)


def _efa_devices(case: Case) -> Ruling:
    """The plugin lists none, it counts: a host with fewer than its peers lost some, or asked so."""
    counts: dict[str, Process] = {}
    for proc in case.world_procs:
        if proc.ofi_nics is not None:
            counts.setdefault(case.machine(proc.host), proc)
    if not counts:
        return unknown("no line counts the EFA devices", INFO_EVERYWHERE)
    ranks = _ranks_by_machine(case)
    found = []
    apart: dict[str, int] = {}
    for name, proc in counts.items():
        alike = [each.ofi_nics for peer, each in counts.items() if ranks[peer] == ranks[name]]
        usual, times = Counter(alike).most_common(1)[0]
        if times * 2 <= len(alike):
            apart[name] = proc.ofi_nics or 0
        if len(alike) >= 3 and times * 2 > len(alike) and (proc.ofi_nics or 0) < (usual or 0):
            found.append(
                Found(
                    rule="LOG-007",
                    cause=causes_plugins.EFA_FEWER,
                    reason=f"NCCL on {name} has {many(proc.ofi_nics or 0, 'EFA device')}, {times} "
                    f"of its peers {usual}",
                    hosts=(name,),
                    evidence=tuple(case.where([proc.provider_at])),
                    measured={"nics_seen": proc.ofi_nics, "next_check": "physical.efa-devices"},
                )
            )
    return wrong(*found[:20]) if found or not apart else _no_majority(apart, "EFA device", "")


def _link_types(case: Case) -> Ruling:
    if gated := not_over_network(case):
        return gated
    mixed = case.of_kind("merge")
    lists = _by_machine(case)
    if not lists and not mixed:
        return unknown("no line lists the NICs", INFO_EVERYWHERE)
    found = []
    if mixed:  # which ends init
        hosts = hosts_of(case, mixed)
        found.append(
            Found(
                rule="LOG-008",
                cause=causes.LINK_TYPE,
                reason=f"{short(mixed[0])}{on(hosts)}",
                hosts=hosts,
                evidence=tuple(case.where(error.at for error in mixed)),
            )
        )
    used = case.world.nic_use if case.world else Counter()
    for name, (proc, nics) in lists.items():
        kinds = {nic.link for nic in nics if nic.link in ("IB", "RoCE")}
        want = case.expected(proc.host).link
        if len(kinds) < 2 and (want is None or kinds <= {want}):
            continue
        busy = {
            nic.link for nic in nics for key in used if key[0] == proc.host and key[2] == nic.index
        }
        bad = len(busy & {"IB", "RoCE"}) > 1 or (want is not None and bool(busy - {want}))
        odd = next((nic for nic in nics if want and nic.link != want), nics[0])
        found.append(
            Found(
                rule="LOG-008",
                cause=causes.LINK_TYPE,
                status=Status.FAIL if bad else Status.WARN,
                reason=f"NICs of {name} are {' and '.join(sorted(kinds))}"
                + (f", want {want}" if want else ": the two cannot talk to each other"),
                hosts=(name,),
                evidence=tuple(case.where([proc.nics_at])),
                places={"device": odd.name.partition("+")[0]},
            )
        )
    return wrong(*found[:20])


RULES: Final = (
    Rule("LOG-007", "all rails are listed", _nic_lists),
    Rule("LOG-008", "one link type", _link_types),
)

"""Rules on the network that NCCL chose: LOG-001 to LOG-006, LOG-009."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from commcheck.lazy import regex
from commcheck.model import Status
from commcheck.nccl import causes
from commcheck.nccl.case import LIBFABRIC, Case
from commcheck.nccl.facts import Process
from commcheck.nccl.ruling import (
    INFO_EVERYWHERE,
    SUBSYSTEMS,
    Found,
    Rule,
    Ruling,
    other,
    right,
    unknown,
    wrong,
)
from commcheck.report.counts import many
from commcheck.report.ranges import fold_hosts

# Bridges of container engines and hypervisors; Docker names those of a user's networks br-<id>.
_BAD_INTERFACES: Final = regex(
    r"(?:docker|virbr|veth|cali|cni|flannel|podman|lxcbr|lxdbr)[\w.-]*|br-[0-9a-f]{12}|lo"
)
_LINK_LOCAL: Final = regex(r"169\.254\.|fe80:", re.IGNORECASE)


def machines_of(case: Case, procs: Iterable[Process]) -> tuple[str, ...]:
    """The machines of processes, each once."""
    return tuple(dict.fromkeys(case.machine(proc.host) for proc in procs))


def not_over_network(case: Case) -> Ruling | None:
    """Gate N: where no traffic crosses a network, what NCCL opened carries nothing."""
    if case.world is None and len(case.hosts) < 2:
        return unknown("no line of a communicator: is the network used at all?", INFO_EVERYWHERE)
    if not case.network_in_use:
        return other("the network is not used by this job (one host, or one NVLink domain)")
    return None


def _expects_rdma(case: Case, proc: Process) -> bool | None:
    """Whether the inventory, or the log itself, says that the host has RDMA NICs."""
    told = case.expected(proc.host)
    if told.rdma is not None:
        return told.rdma
    return True if proc.nics or told.platform == "gpu-efa" else None


def _socket(case: Case) -> Ruling:
    if gated := not_over_network(case):
        return gated
    if case.network is None:
        return unknown("no line says which network is used", INFO_EVERYWHERE)
    if len(case.networks) > 1:
        return right()
    over_tcp = [proc for proc in case.world_procs if proc.ofi_over_tcp and case.libfabric]
    on_tcp = case.networks.get("Socket", []) or over_tcp
    procs = [proc for proc in on_tcp if _expects_rdma(case, proc) is not False]
    if not procs and any(not case.expected(proc.host).network for proc in on_tcp):
        return right(
            "TCP, as gpu-tcp says; where a plugin is expected (Google's GPUDirectTCPX, FasTrak), "
            "declare commcheck_nccl_network"
        )
    if not procs:
        return right()
    sure = [proc for proc in procs if _expects_rdma(case, proc)]
    hosts = machines_of(case, sure or procs)
    why = "although they have RDMA NICs" if sure else "and no inventory says if they have RDMA NICs"
    used = f"libfabric's provider {over_tcp[0].provider}" if over_tcp else "network Socket"
    places = [proc.provider_at if over_tcp else proc.network_at for proc in procs]
    failed = [error for error in case.of_kind("ofi-init") if error.proc in procs]
    why += ": libfabric's plugin could not start" if failed else ""
    forced = next((said for proc in procs if (said := forces_tcp(proc.env.items()))), "")
    why += f": {forced} is set" if forced else ""
    places += [error.at for error in failed]
    is_efa = over_tcp or any(case.expected(proc.host).platform == "gpu-efa" for proc in procs)
    below = "efa-devices" if is_efa else "rdma-device-count"
    return wrong(
        Found(
            rule="LOG-001",
            cause=causes.LIBFABRIC_TCP if over_tcp else causes.SOCKET_FALLBACK,
            status=Status.FAIL if sure else Status.WARN,
            reason=f"{many(len(procs), 'rank')} on {fold_hosts(hosts)} "
            f"{'uses' if len(procs) == 1 else 'use'} {used}, {why}",
            hosts=hosts,
            evidence=tuple(case.where(places)),
            measured={"ranks_on_socket": len(procs), "next_check": f"physical.{below}"},
        )
    )


def forces_tcp(settings: Iterable[tuple[str, str]]) -> str:
    """The setting that turns RDMA off, of names and values; "" where none does."""
    return next(
        (
            f"{name}={value}"
            for name, value in settings
            if (name, value.lower()) in (("NCCL_IB_DISABLE", "1"), ("NCCL_NET", "socket"))
        ),
        "",
    )


def _no_device(case: Case) -> Ruling:
    if gated := not_over_network(case):
        return gated
    if case.plugin:
        return other(f"{case.network} carries the traffic, not the built-in transport")
    if not case.saw("INIT"):
        return unknown("no line of the network's choice", INFO_EVERYWHERE)
    procs = [
        proc
        for proc in case.procs
        if proc.no_device and not proc.nics and case.expected(proc.host).rdma is not False
    ]
    # EFA is none of the built-in transport's devices.
    procs = [proc for proc in procs if case.expected(proc.host).platform != "gpu-efa"]
    if not procs:
        return right()
    sure = [proc for proc in procs if case.expected(proc.host).rdma]
    mixed = any(proc.nics for proc in case.procs)
    hosts = machines_of(case, sure or procs)
    return wrong(
        Found(
            rule="LOG-002",
            cause=causes.NO_DEVICE,
            status=Status.FAIL if sure or mixed else Status.WARN,
            reason=f"NCCL found no RDMA device on {fold_hosts(hosts)}",
            hosts=hosts,
            evidence=tuple(case.where(proc.no_device for proc in procs)),
            measured={
                "processes_without_device": len(procs),
                "next_check": "physical.rdma-device-count",
            },
        )
    )


def _verbs(case: Case) -> Ruling:
    opened = case.of_kind("open-device")
    missing = case.of_kind("no-verbs")
    if not opened and not missing:
        return right()
    if case.world is not None and (gated := not_over_network(case)):
        return gated
    if case.plugin and not opened:
        return other(f"{case.network} carries the traffic, not the built-in transport")
    # Up to 2.20 every host without rdma-core warns so: it need not have a NIC for it.
    sure = [error for error in missing if case.expected(error.proc.host).rdma]
    errors = opened + (sure or missing)
    proven = opened or sure or any(proc.nics for proc in case.procs)
    hosts = machines_of(case, (error.proc for error in errors))
    return wrong(
        Found(
            rule="LOG-003",
            cause=causes.NO_DEVICE,
            status=Status.FAIL if proven else Status.WARN,
            reason=f"{errors[0].text[:120]} on {fold_hosts(hosts) or 'an unnamed host'}",
            hosts=hosts,
            evidence=tuple(case.where(error.at for error in errors)),
        )
    )


_INTERFACE: Final = regex(r"[_ ]v\d{1,3}$")
"""What names of plugins end in: the version of NCCL's plugin interface, ``IBext_v10``."""


def _is(network: str, wanted: str) -> bool:
    """Whether a network is the one declared: new releases change the end, and dropped "AWS "."""
    if network in LIBFABRIC and wanted in LIBFABRIC:
        return True
    return _INTERFACE.sub("", network).lower() == _INTERFACE.sub("", wanted).lower()


def _plugin(case: Case) -> Ruling:
    wanted = {
        proc.host: case.expected(proc.host).network
        for proc in case.procs
        if case.expected(proc.host).network
    }
    failed = case.of_kind("plugin", "net-name")
    if not wanted and not failed:
        return other("no plugin is expected here: its absence is normal probing")
    if case.network is None and not failed:
        return unknown("no line says which network is used", INFO_EVERYWHERE)
    bad = [
        proc
        for proc in case.procs
        if (want := wanted.get(proc.host)) and proc.network and not _is(proc.network, want)
    ]
    if not bad and (not failed or case.plugin):
        return right()
    procs = bad or [error.proc for error in failed]
    hosts = machines_of(case, procs)
    used = f"uses network {bad[0].network}, want {wanted[bad[0].host]}" if bad else failed[0].text
    return wrong(
        Found(
            rule="LOG-004",
            cause=causes.PLUGIN_MISSING,
            reason=f"{fold_hosts(hosts) or 'the job'}: {used[:160]}",
            hosts=hosts,
            evidence=tuple(
                case.where([*(p.network_at for p in bad), *(error.at for error in failed)])
            ),
        )
    )


def _mixed(case: Case) -> Ruling:
    comm = case.world
    if comm is not None and not case.network_in_use:
        return other("the network is not used by this job (one host, or one NVLink domain)")
    if comm is None or case.network is None:
        return unknown("no line says which network each rank uses", INFO_EVERYWHERE)
    lines = {"Socket" if net == "Socket" else "rdma" for net in comm.nets}
    if len(case.networks) < 2 and len(lines) < 2:
        return right()
    odd = case.networks.get("Socket") or min(case.networks.values(), key=len)
    hosts = machines_of(case, odd)
    counts = ", ".join(f"{name} on {len(procs)}" for name, procs in sorted(case.networks.items()))
    return wrong(
        Found(
            rule="LOG-006",
            cause=causes.MIXED_NETWORKS,
            reason=f"ranks of one communicator use different networks ({counts}): "
            f"look at {fold_hosts(hosts)}",
            hosts=hosts,
            evidence=tuple(case.where(proc.network_at for proc in odd)),
            measured={"ranks_by_network": {n: len(p) for n, p in case.networks.items()}},
        )
    )


def _interfaces(case: Case) -> Ruling:
    nothing = case.of_kind("no-interface")
    if gated := not_over_network(case):
        return gated
    procs = [proc for proc in case.procs if proc.oob]
    if not procs:
        if nothing:
            return other("no interface was found at all: see LOG-010")
        return unknown("no Bootstrap line (a subsystem of its own from 2.23)", SUBSYSTEMS)
    bad = [
        proc
        for proc in procs
        if proc.oob and (_BAD_INTERFACES.fullmatch(proc.oob[0]) or _LINK_LOCAL.match(proc.oob[1]))
    ]
    comm = case.world
    if not bad:
        return right()
    done = comm is not None and any(member.complete for member in comm.members.values())
    loopback = any(proc.oob and proc.oob[0] == "lo" for proc in bad)
    hosts = machines_of(case, bad)
    first = bad[0].oob or ("", "")
    return wrong(
        Found(
            rule="LOG-009",
            cause=causes.WRONG_INTERFACE,
            status=Status.WARN if done and not (loopback and len(case.hosts) > 1) else Status.FAIL,
            reason=f"bootstrap on {fold_hosts(hosts)} uses {first[0]} ({first[1]})",
            hosts=hosts,
            evidence=tuple(case.where(proc.oob_at for proc in bad)),
        )
    )


RULES: Final = (
    Rule("LOG-001", "no TCP where there is RDMA", _socket),
    Rule("LOG-002", "RDMA devices are visible", _no_device),
    Rule("LOG-003", "RDMA devices can be opened", _verbs),
    Rule("LOG-004", "the expected plugin is used", _plugin),
    Rule("LOG-006", "one network for all ranks", _mixed),
    Rule("LOG-009", "bootstrap on a routable interface", _interfaces),
)

"""Rules on the network and its NICs: ENV-010 to ENV-019, ENV-022, ENV-026 to ENV-029."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from commcheck.nccl.environment import causes
from commcheck.nccl.environment.model import CONF, Environment, HostFacts, Port
from commcheck.nccl.environment.rule import UNSET, EnvRule, each, fail, warn
from commcheck.nccl.environment.rules_values import BANNER
from commcheck.nccl.environment.values import Names, names
from commcheck.nccl.ruling import Found, Ruling, other, right, unknown, wrong

INVENTORY: Final = "declare the host in an inventory (-i), or ask the host itself: commcheck run"
HOST: Final = "ask the host itself: commcheck run"
"""Ports, interfaces and modules stand in no inventory."""

_BUILT_IN: Final = frozenset({"ib", "socket"})
_NEVER: Final = frozenset(
    [
        "rdma",
        "roce",
        "infiniband",
        "verbs",
        "ethernet",
        "eth",
        "tcp",
        "sockets",
        "mlx5",
        "mlx",
        "rocev2",
        "nccl",
    ]
)
"""Words that people write into NCCL_NET, and that are no network's name."""


def _forced(one: Environment, host: HostFacts, shown: str) -> Ruling:
    """TCP on hosts with RDMA: how bad depends on whether the job leaves the host."""
    if host.rdma is None:
        return unknown(f"{shown}, and whether the host has RDMA NICs is not known", INVENTORY)
    if not host.rdma:
        return right("the host has no RDMA NICs")
    if host.network and "socket" not in host.network.lower():
        return right(f"{shown}: {host.network} carries the traffic")
    spans = one.spans_hosts
    is_certain = spans or (spans is None and one.kind == CONF)
    reason = f"{shown} forces TCP on a host with RDMA NICs, want it unset"
    return wrong((fail if is_certain else warn)(causes.TCP_FORCED, reason))


def _disabled(one: Environment, host: HostFacts) -> Ruling:
    if not one.int("NCCL_IB_DISABLE"):
        return right() if one.get("NCCL_IB_DISABLE") else other(UNSET)
    return _forced(one, host, one.show("NCCL_IB_DISABLE"))


def _socket(one: Environment, host: HostFacts) -> Ruling:
    if (one.get("NCCL_NET") or "").lower() == "socket":
        return _forced(one, host, one.show("NCCL_NET"))
    if (one.get("NCCL_NET_PLUGIN") or "").lower() == "none" and host.network:
        reason = f"{one.show('NCCL_NET_PLUGIN')}, want the plugin of {host.network}"
        return wrong((warn if one.spans_hosts is False else fail)(causes.TCP_FORCED, reason))
    return right()


def _network(one: Environment, host: HostFacts) -> Ruling:
    name = one.get("NCCL_NET")
    if name is None:
        return other(UNSET)
    if name.lower() in _BUILT_IN or (host.network and name.lower() == host.network.lower()):
        return right()
    if name.lower() in _NEVER and not one.get("NCCL_NET_PLUGIN"):
        return wrong(fail(causes.NO_SUCH_NETWORK, f"{one.show('NCCL_NET')}: want IB, or unset"))
    return unknown(
        f"{one.show('NCCL_NET')}: whether a plugin of that name is loaded is not known",
        "declare commcheck_nccl_network, or give a log with NCCL_DEBUG=INFO",
    )


# --- which NICs ---------------------------------------------------------------------------------


def selected(one: Environment, host: HostFacts) -> tuple[Port, ...] | None:
    """The active ports that NCCL uses by NCCL_IB_HCA; without it the rails. None: not known."""
    if host.ports is None:
        return None
    active = [port for port in host.ports if port.active is not False]
    listed = one.get("NCCL_IB_HCA")
    if listed is not None:
        chosen = names(listed)
        return tuple(port for port in active if chosen.takes(port.hca, port.number))
    if host.rails is not None:
        return tuple(port for port in active if port.hca in host.rails)
    return tuple(active)


def _prefix(one: Environment, host: HostFacts) -> Ruling:
    chosen = _list_of(one)
    if isinstance(chosen, Ruling):
        return chosen
    if chosen.exact or chosen.excludes:
        return right()
    shown = one.show("NCCL_IB_HCA")
    if host.ports is None:
        # No kernel writes mlx5_00; and who writes mlx5 means all of them.
        risky = [name for name, _ in chosen.names if re.search(r"_[1-9]\d?$", name)]
        if not risky:
            return right()
        return unknown(f"{shown} also takes {risky[0]}0, ... where there are such", HOST)
    active = {port.hca for port in host.ports if port.active is not False}
    extra = sorted(
        hca
        for hca in active
        if any(hca != name and hca.startswith(name) for name, _ in chosen.names)
        and hca not in {name for name, _ in chosen.names}
    )
    if not extra:
        return right()
    if host.rails is None:
        return unknown(f"{shown} also takes {', '.join(extra)}", "declare commcheck_nics")
    strangers = [hca for hca in extra if hca not in host.rails]
    if not strangers:
        return right(f"{shown} takes {', '.join(extra)}, which are rails")
    reason = (
        f"{shown} also takes {', '.join(strangers)}, no training rail: want '=' before the list"
    )
    return wrong(fail(causes.HCA_LIST, reason))


def _list_of(one: Environment) -> Names | Ruling:
    listed = one.get("NCCL_IB_HCA")
    if listed is None:
        return other(UNSET)
    if one.int("NCCL_IB_DISABLE"):
        return other("IB is disabled")
    return names(listed)


def _absent(one: Environment, host: HostFacts) -> Ruling:
    chosen = _list_of(one)
    if isinstance(chosen, Ruling):
        return chosen
    shown = one.show("NCCL_IB_HCA")
    if host.ports is None:
        if host.rails and not chosen.excludes and not _gone(chosen, host.rails):
            return right(f"{shown}: all of them are declared")
        return unknown(f"{shown}: the host's HCAs are not known", HOST)
    if chosen.excludes:
        return right()
    hcas = sorted({port.hca for port in host.ports})
    gone = _gone(chosen, hcas)
    if not gone:
        return right()
    left = {port.hca for port in selected(one, host) or ()}
    lacking = host.rails is not None and len(left) < len(host.rails)
    reason = f"{shown} names {', '.join(gone)}, and the host has {', '.join(hcas) or 'none'}"
    if not left or lacking:
        return wrong(fail(causes.HCA_LIST, reason))
    return right(reason)


def _gone(chosen: Names, hcas: Sequence[str]) -> list[str]:
    """Names in a list that none of these HCAs has."""
    return [
        name
        for name, _ in chosen.names
        if not any(hca == name if chosen.exact else hca.startswith(name) for hca in hcas)
    ]


def _count(one: Environment, host: HostFacts) -> Ruling:
    chosen = _list_of(one)
    if isinstance(chosen, Ruling):
        return chosen
    if host.rails is None:
        return unknown("the training rails of the host are not known", INVENTORY)
    wanted = set(host.rails)
    ports = selected(one, host)
    used = {rail for rail in wanted if chosen.takes(rail)}
    if ports is not None:
        used = {port.hca for port in ports}
    if used == wanted or (ports is not None and not used):
        return right()
    words = []
    if wanted - used:
        words.append(f"leaves out {', '.join(sorted(wanted - used))}")
    if used - wanted:
        words.append(f"adds {', '.join(sorted(used - wanted))}")
    reason = f"{one.show('NCCL_IB_HCA')} {' and '.join(words)} against the rails"
    return wrong(warn(causes.HCA_LIST, reason))


def _mixed(one: Environment, host: HostFacts) -> Ruling:
    if one.get("NCCL_IB_HCA") is None:
        return other(UNSET)
    ports = selected(one, host)
    if ports is None:
        return unknown("the host's HCAs are not known", HOST)
    links = {port.link for port in ports if port.link}
    if len(links) < 2:
        return right()
    reason = f"{one.show('NCCL_IB_HCA')} takes {' and '.join(sorted(links))} ports together"
    return wrong(fail(causes.HCA_LIST, reason))


# --- GID, service level, queue pairs ------------------------------------------------------------


def _gid(one: Environment, host: HostFacts) -> Ruling:
    index = one.int("NCCL_IB_GID_INDEX")
    if index is None or index < 0:
        return other(UNSET)
    shown = one.show("NCCL_IB_GID_INDEX")
    ports = selected(one, host)
    if ports is None:
        return unknown(f"{shown}: the GIDs of the ports are not known", HOST)
    roce = [port for port in ports if port.link == "Ethernet"]
    if not roce:
        return other("no RoCE port is used")
    kinds = {port.hca: _kind(port, index) for port in roce}
    if "" in kinds.values():
        return unknown(f"{shown}: the GIDs of a port could not be read", HOST)
    empty = [hca for hca, kind in kinds.items() if kind == "nothing"]
    if empty:
        return wrong(fail(causes.GID, f"{shown} points to nothing on {', '.join(empty)}"))
    odd = [f"{kind} on {hca}" for hca, kind in kinds.items() if kind != "RoCE v2"]
    if not odd:
        return right()
    is_certain = len(set(kinds.values())) > 1 or host.lossless is True
    reason = f"{shown} is {', '.join(odd[:4])}, want RoCE v2 on all"
    return wrong((fail if is_certain else warn)(causes.GID, reason))


def _kind(port: Port, index: int) -> str:
    """What stands at the index: "" where it is not known."""
    if port.gids is None:
        return ""
    gid = next((each for each in port.gids if each.index == index), None)
    if gid is None:
        return "nothing"
    version = f"RoCE v{gid.roce_version}"
    return f"link-local {version}" if gid.is_link_local else version


def _gid_auto(one: Environment, _host: HostFacts) -> Ruling:
    index = one.int("NCCL_IB_GID_INDEX")
    if index is None or index < 0:
        return other(UNSET)
    if one.version is None:
        return unknown("the release of NCCL is not known", BANNER)
    if one.version >= (2, 21, 0):
        shown = one.show("NCCL_IB_GID_INDEX")
        return right(f"{shown}: this NCCL picks the index itself, which survives a port's flap")
    return right()


def _gid_unset(one: Environment, host: HostFacts) -> Ruling:
    if host.link != "Ethernet" or host.network:
        return other("no RoCE host")
    if one.int("NCCL_IB_GID_INDEX") is not None:
        return right()
    if one.version is None:
        return unknown(
            "whether this NCCL picks the GID itself (2.21 and newer) is not known", BANNER
        )
    if one.version >= (2, 21, 0):
        return right()
    if not one.is_unset("NCCL_IB_GID_INDEX"):
        return unknown("only a part of the environment is known", "give /proc/PID/environ")
    reason = "NCCL_IB_GID_INDEX is unset, and NCCL before 2.21 then takes index 0: RoCE v1 mostly"
    return wrong(warn(causes.GID, reason))


def _service_level(one: Environment, host: HostFacts) -> Ruling:
    if one.int("NCCL_IB_SL") is None or one.int("NCCL_IB_TC") is not None:
        return other(UNSET)
    ports = selected(one, host)
    known = [port for port in ports or () if port.link == "Ethernet" and port.qos]
    if ports is None or (not known and any(port.link == "Ethernet" for port in ports)):
        return unknown("what the ports trust is not known", HOST)
    if not any(port.qos and port.qos.trust == "dscp" for port in known):
        return right()
    if not one.is_unset("NCCL_IB_TC"):
        return right()
    reason = (
        f"{one.show('NCCL_IB_SL')} counts for nothing on ports that trust DSCP: want NCCL_IB_TC"
    )
    return wrong(warn(causes.TRAFFIC_CLASS, reason))


def _queue_pairs(one: Environment, _host: HostFacts) -> Ruling:
    count = one.int("NCCL_IB_QPS_PER_CONNECTION")
    if count is None:
        return other(UNSET)
    if count <= 8:
        return right()
    reason = f"{one.show('NCCL_IB_QPS_PER_CONNECTION')}, want 1 to 4: queue pairs run out"
    return wrong(warn(causes.TUNING, reason))


def _one_flow(one: Environment, host: HostFacts) -> Ruling:
    """One queue pair is one flow, which a hash puts on one path whatever else is free."""
    if host.link != "Ethernet" or host.network:
        return other("no RoCE host")
    count = one.int("NCCL_IB_QPS_PER_CONNECTION")
    if count is not None and count > 1:
        return right()
    if count is None and not one.is_unset("NCCL_IB_QPS_PER_CONNECTION"):
        return unknown("only a part of the environment is known", "give /proc/PID/environ")
    if host.ecmp is None:
        return unknown(
            "whether the fabric spreads flows by a hash is not known", "declare commcheck_ecmp"
        )
    if not host.ecmp:
        return right()
    shown = one.show("NCCL_IB_QPS_PER_CONNECTION")
    return right(f"{shown}: one flow a connection, and flows collide; 2 to 4 spread them")


def _ordering(one: Environment, host: HostFacts) -> Ruling:
    if host.network:
        return other("a plugin carries the traffic")
    if one.int("NCCL_IB_PCI_RELAXED_ORDERING") != 0:
        return right()
    reason = f"{one.show('NCCL_IB_PCI_RELAXED_ORDERING')} costs bandwidth, want it unset"
    return wrong(warn(causes.TUNING, reason))


def _gdr(one: Environment, host: HostFacts) -> Ruling:
    found: list[Found] = []
    if one.int("NCCL_NET_GDR_READ") == 0:
        reason = f"{one.show('NCCL_NET_GDR_READ')}: sends go through host memory"
        found.append(warn(causes.GDR_OFF, reason))
    off = one.get("NCCL_NET_GDR_LEVEL") in ("LOC", "0")
    no_dmabuf = one.int("NCCL_DMABUF_ENABLE") == 0
    shown = one.show("NCCL_NET_GDR_LEVEL" if off else "NCCL_DMABUF_ENABLE")
    if off or (no_dmabuf and host.peermem is False):
        if host.gdr is None:
            return unknown(f"{shown}: whether GPU Direct is wanted here is not known", INVENTORY)
        if host.gdr:
            found.append(fail(causes.GDR_OFF, f"{shown} switches GPU Direct RDMA off"))
    elif no_dmabuf and host.peermem is None:
        return unknown(f"{shown}: whether nvidia_peermem is loaded is not known", HOST)
    return wrong(*found)


RULES: Final[tuple[EnvRule, ...]] = (
    each("ENV-010", "RDMA is not disabled", _disabled, weighty=True),
    each("ENV-011", "the network is not TCP", _socket, weighty=True),
    each("ENV-012", "the network exists", _network, weighty=True),
    each("ENV-013", "no HCA by accident", _prefix, weighty=True),
    each("ENV-014", "the HCAs are there", _absent, weighty=True),
    each("ENV-015", "all rails are used", _count),
    each("ENV-016", "HCAs are of one kind", _mixed),
    each("ENV-017", "the GID index is right", _gid, weighty=True),
    each("ENV-018", "the GID index is chosen by NCCL", _gid_auto),
    each("ENV-019", "old NCCL has a GID index", _gid_unset),
    each("ENV-022", "the service level counts", _service_level),
    each("ENV-026", "queue pairs do not run out", _queue_pairs),
    each("ENV-027", "flows are spread", _one_flow),
    each("ENV-028", "PCI ordering is relaxed", _ordering),
    each("ENV-029", "GPU Direct is on", _gdr, weighty=True),
)

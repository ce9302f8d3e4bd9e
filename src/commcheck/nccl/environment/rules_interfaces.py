"""Rules on interfaces, and on UCX beside NCCL: ENV-046 to ENV-048, ENV-060."""

from __future__ import annotations

from typing import Final

from commcheck.lazy import regex
from commcheck.nccl.environment import causes
from commcheck.nccl.environment.model import Environment, HostFacts
from commcheck.nccl.environment.rule import UNSET, EnvRule, each, fail, warn
from commcheck.nccl.environment.rules_network import HOST
from commcheck.nccl.environment.values import names
from commcheck.nccl.ruling import Ruling, other, right, unknown, wrong

_NEVER_ROUTED: Final = regex(r"(?:docker|virbr|lo$|veth|cni|flannel|cali|br-)")


def _interface(one: Environment, host: HostFacts) -> Ruling:
    wanted = [name for name in ("NCCL_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME") if one.get(name)]
    if not wanted:
        return other(UNSET)
    if host.netdevs is None:
        shown = one.show(wanted[0])
        return unknown(f"{shown}: the host's interfaces are not known", HOST)
    found = []
    for name in wanted:
        hits = [dev for dev in host.netdevs if names(one.get(name) or "").takes(dev)]
        usable = [dev for dev in hits if not _NEVER_ROUTED.match(dev)]
        if not hits:
            there = ", ".join(host.netdevs[:8]) or "none"
            reason = f"{one.show(name)} matches no interface of the host: {there}"
            found.append(fail(causes.INTERFACE, reason))
        elif not usable:
            reason = f"{one.show(name)} matches only {', '.join(hits)}, which reach no other host"
            found.append(fail(causes.INTERFACE, reason))
    return wrong(*found)


def _unnamed(one: Environment, host: HostFacts) -> Ruling:
    """NCCL takes ``ib*`` first, else the first that is up; on every host by itself."""
    if one.get("NCCL_SOCKET_IFNAME"):
        return right()
    if not any(name.startswith("NCCL_") for name in one.settings):
        return other("nothing of NCCL is set")
    if not one.is_unset("NCCL_SOCKET_IFNAME"):
        return unknown("only a part of the environment is known", "give /proc/PID/environ")
    if host.netdevs is None:
        return unknown("the host's interfaces are not known", HOST)
    routed = [dev for dev in host.netdevs if not _NEVER_ROUTED.match(dev)]
    choice = [dev for dev in routed if dev not in host.rail_netdevs]
    if len(choice) < 2:
        return right()
    reason = f"NCCL_SOCKET_IFNAME is unset, and the host has {', '.join(choice[:6])}"
    return wrong(warn(causes.INTERFACE, f"{reason}: each host takes its own first"))


def _gloo(one: Environment, host: HostFacts) -> Ruling:
    name = "GLOO_SOCKET_IFNAME"
    given = one.get(name)
    if given is None:
        return right()
    words = [word for word in given.split(",") if word]
    if any(word[0] in "^=" for word in words):
        return wrong(warn(causes.INTERFACE, f"{one.show(name)}: gloo knows no '^' and no '='"))
    if host.netdevs is not None:
        gone = [word for word in words if word not in host.netdevs]
        if not gone:
            return right()
        reason = (
            f"{one.show(name)}: the host has no interface {gone[0]}, and gloo takes no beginnings"
        )
        return wrong(warn(causes.INTERFACE, reason))
    # Kernel and udev number every device that may be there twice.
    bare = [word for word in words if word.isalpha() and word != "lo"]
    if bare:
        reason = f"{one.show(name)} is no whole name, and gloo takes no beginnings"
        return wrong(warn(causes.INTERFACE, reason))
    return unknown(f"{one.show(name)}: the host's interfaces are not known", HOST)


def _stacks(one: Environment, _host: HostFacts) -> Ruling:
    found = []
    devices, hcas = one.get("UCX_NET_DEVICES"), one.get("NCCL_IB_HCA")
    if devices and hcas and devices != "all":
        chosen = names(hcas)
        strangers = [
            word
            for word in (part.partition(":")[0] for part in devices.split(","))
            if word.startswith(("mlx", "bnxt", "irdma")) and not chosen.takes(word)
        ]
        if strangers:
            listed = one.show("NCCL_IB_HCA")
            reason = f"{one.show('UCX_NET_DEVICES')} has {', '.join(strangers)}, {listed} not"
            found.append(warn(causes.OTHER_STACK, reason))
    for ucx, nccl in (
        ("UCX_IB_GID_INDEX", "NCCL_IB_GID_INDEX"),
        ("UCX_IB_TRAFFIC_CLASS", "NCCL_IB_TC"),
    ):
        left, right_ = one.number(ucx), one.number(nccl)
        if left and right_ and left.digits and left.value != right_.value >= 0:
            found.append(warn(causes.OTHER_STACK, f"{one.show(ucx)} against {one.show(nccl)}"))
    return wrong(*found)


RULES: Final[tuple[EnvRule, ...]] = (
    each("ENV-046", "the interface exists", _interface, weighty=True),
    each("ENV-047", "the interface is named", _unnamed),
    each("ENV-048", "gloo's interface exists", _gloo),
    each("ENV-060", "UCX uses the same rails", _stacks),
)

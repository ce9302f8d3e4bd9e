"""Each rail answers for its own address, and packets leave by the rail they belong to.

Why: With several NICs in one subnet, Linux answers ARP for any address on any of them and sends
everything out of one. Rails then share a port, or a peer's packets come in where nobody expects
them and a strict filter drops them: connection timeouts between some pairs only.
Reads: ``ip -j addr``, ``ip -j rule`` and ``/proc/sys/net/ipv4/conf``. One verdict for each host.
By hand: ``ip -br -4 addr``; ``ip rule``; ``sysctl net.ipv4.conf.DEV.arp_ignore``.
Mend: best, a subnet for each rail. Else a routing table for each rail's source address,
``arp_ignore=1`` and ``arp_announce=2``, and ``rp_filter`` 0 or 2.
On the switch: nothing; look in its ARP table whether two addresses have one MAC.
Healthy though odd: rails in subnets of their own need none of this. Addresses of InfiniBand's IPoIB
are not judged. A rail without an IPv4 address is the GID check's matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Interface

from commcheck.check import Check, Nothing, failed, not_applicable, passed, reads, warned
from commcheck.formats.ip_addresses import IP_ADDRESSES, IpAddresses
from commcheck.formats.ipv4_conf import IPV4_CONF, Ipv4Conf
from commcheck.lazy import dataclass
from commcheck.model import Cause, Machine, Remedy, Verdict, Words
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Seen:
    """Addresses, rules by source, and the kernel's settings."""

    ip: IpAddresses = reads(IP_ADDRESSES)
    conf: Ipv4Conf = reads(IPV4_CONF)


PLAN = Remedy(
    command="ip -br -4 addr",
    effect=Words(
        "Shows the addresses. Give each rail a subnet of its own, or a routing table for its "
        "source address.",
        "显示地址。为每条轨规划独立子网，或按源地址配置独立路由表。",
    ),
    precondition=Words(
        "The address plan of the fleet; changing addresses cuts the rail: no job on the host.",
        "依据集群地址规划；修改地址会中断该轨：主机上不得有作业。",
    ),
    who="network team",
)
SYSCTL = Remedy(
    command="sysctl -w net.ipv4.conf.{netdev}.arp_ignore=1 net.ipv4.conf.{netdev}.arp_announce=2",
    effect=Words(
        "The rail answers for its own address only, at once; the same on every rail. Gone at "
        "reboot unless it is in sysctl.d.",
        "该轨只应答自己的地址，立即生效；每条轨都需设置。未写入 sysctl.d 则重启后失效。",
    ),
    precondition=Words("No job on the host.", "主机上没有作业。"),
)
LOOSE = Remedy(
    command="sysctl -w net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.{netdev}.rp_filter=2",
    effect=Words(
        "The filter no longer drops what comes in by another rail, at once. Gone at reboot unless "
        "it is in sysctl.d.",
        "反向路径过滤不再丢弃从其他轨进入的报文，立即生效。未写入 sysctl.d 则重启后失效。",
    ),
    precondition=Words(
        "The security owner agrees: it is a guard against forged addresses.",
        "需安全负责人同意：该过滤用于防止伪造源地址。",
    ),
    who="security owner",
)

SHARED = Cause(
    slug="rails-share-subnet",
    title=Words("Rails in one subnet without rules", "多条轨共用子网且无策略路由"),
    meaning=Words(
        "Several rails in one subnet answer for each other, and all traffic may leave by one.",
        "多条轨同处一个子网会互相代答，流量可能全部从一条轨发出。",
    ),
    remedies=(PLAN, SYSCTL),
)
STRICT = Cause(
    slug="rp-filter-strict",
    title=Words("Strict filter on shared subnets", "共用子网时启用严格反向过滤"),
    meaning=Words(
        "Strict reverse-path filtering drops packets that come in by another rail of the subnet.",
        "严格反向路径过滤会丢弃从同子网其他轨进入的报文。",
    ),
    remedies=(LOOSE, PLAN),
)
TWICE = Cause(
    slug="rail-address-twice",
    title=Words("Two rails have one address", "两条轨使用同一地址"),
    meaning=Words(
        "The same address is on two rails of the host.",
        "同一地址同时配置在主机的两条轨上。",
    ),
    remedies=(PLAN,),
)


def judge(seen: Seen, machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """Only rails that share a subnet need rules."""
    rails = [
        (rail.netdev, address)
        for rail in machine.rails
        if rail.present and rail.netdev and rail.link_layer in (None, "Ethernet")
        for address in seen.ip.of(rail.netdev)
    ]
    if len({netdev for netdev, _ in rails}) < 2:
        return not_applicable("fewer than two rails have an IPv4 address")
    addresses = [str(address.ip) for _, address in rails]
    for address in addresses:
        if addresses.count(address) > 1:
            return failed(TWICE, f"{address} is on {addresses.count(address)} rails, want one")
    shared = _sharing(rails)
    measured = {"rails": len(rails), "sharing": sorted(netdev for netdev, _ in shared)}
    if not shared:
        return passed(f"{many(len(rails), 'rail')}, each in a subnet of its own", measured=measured)
    if unruled := list(_unruled(shared, seen)):
        netdev, why = unruled[0]
        reason = (
            f"{len(shared)} rails share {shared[0][1].network}, and {netdev} {why}; want a subnet "
            "for each, or rules by source with arp_ignore 1 and arp_announce 2"
        )
        return failed(SHARED, reason, measured=measured, netdev=netdev)
    strict = [netdev for netdev, _ in shared if seen.conf.of(netdev, "rp_filter") == 1]
    if strict:
        reason = f"{', '.join(strict[:4])} share a subnet with rp_filter 1 (strict), want 0 or 2"
        return warned(STRICT, reason, measured=measured, netdev=strict[0])
    return passed(f"{len(shared)} rails share a subnet, with rules for each", measured=measured)


def _sharing(rails: list[tuple[str, IPv4Interface]]) -> list[tuple[str, IPv4Interface]]:
    return [
        (netdev, address)
        for netdev, address in rails
        if any(other != netdev and address.network.overlaps(that.network) for other, that in rails)
    ]


def _unruled(shared: list[tuple[str, IPv4Interface]], seen: Seen) -> Iterable[tuple[str, str]]:
    for netdev, address in shared:
        if str(address.ip) not in seen.ip.ruled:
            yield netdev, f"has no rule for {address.ip}"
            continue
        for name, least in (("arp_ignore", 1), ("arp_announce", 2)):
            value = seen.conf.of(netdev, name)
            if value is not None and value < least:
                yield netdev, f"has {name} {value}"


CHECK = Check(
    id="physical.rail-arp",
    title=Words("Rails answer for themselves", "各轨只应答自身地址"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    causes=(SHARED, STRICT, TWICE),
    platforms=frozenset({"gpu-roce"}),
)

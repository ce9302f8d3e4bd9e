"""The RoCE port has a RoCE v2 address that routers carry.

Why: A queue pair needs a GID on both sides. With RoCE v1 only, or link-local addresses only, hosts
below one leaf may still talk, and every connection between racks times out: ``ibv_modify_qp to
RTR`` hangs or fails with 110, NCCL reports error 12.
Reads: ``/sys/class/infiniband/HCA/ports/N/gids``, ``gid_attrs/types`` and ``gid_attrs/ndevs``. One
verdict for each Ethernet rail.
By hand: ``show_gids HCA``, or ``ibv_devinfo -v -d HCA | grep GID``; ``ip -br addr show DEV``.
Mend: give the rail's netdev its address, and keep it in the network configuration; the kernel makes
the v1 and v2 GIDs of it by itself. Indices shift when addresses are added in another order: leave
``NCCL_IB_GID_INDEX`` unset with NCCL 2.21 or newer, or look the index up again.
On the switch: the gateway of the rail's subnet, and a route between the subnets of all racks.
Healthy though odd: the index need not be 3; an IPv6 address beside IPv4 moves it to 5. The address
may belong to a VLAN of the netdev. On fabrics of IPv6 alone declare ``commcheck_gid_family: ipv6``.
Hosts that are cabled to each other may use link-local IPv4 on purpose: alone it is a warning.
"""

from __future__ import annotations

from commcheck.applies import ethernet_only
from commcheck.check import Check, Nothing, expects, failed, passed, reads, warned
from commcheck.expect import GID_FAMILY
from commcheck.formats.gid_table import GID_TABLE, Gid, GidTable
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Seen:
    """The port's GIDs."""

    table: GidTable = reads(GID_TABLE)


@dataclass(frozen=True, slots=True)
class Want:
    """The fabric's address family."""

    family: Wanted[str] = expects(GID_FAMILY)


ASSIGN = Remedy(
    command="ip -br addr show dev {netdev}",
    effect=Words(
        "Shows the addresses. Assign the one the address plan gives this rail (ip addr add "
        "ADDRESS/PREFIX dev {netdev}) and keep it in the network configuration.",
        "显示现有地址。按地址规划为该轨配置地址，并写入网络配置以便持久化。",
    ),
    precondition=Words(
        "The address is this rail's own in the plan: one used twice breaks another host too.",
        "确认该地址在规划中属于此轨：地址冲突会影响另一台主机。",
    ),
)
VERSION_TWO = Remedy(
    command="ibv_devinfo -v -d {hca}",
    effect=Words(
        "Shows the GIDs with their types. A card or firmware that offers v1 only needs RoCE v2 "
        "enabled in its firmware settings, or a newer driver.",
        "显示 GID 及类型。仅提供 v1 的网卡需在固件中启用 RoCE v2，或升级驱动。",
    ),
    precondition=Words(
        "Firmware settings change only on a drained host, with the owner's consent.",
        "固件设置只能在排空的主机上、经负责人同意后修改。",
    ),
)
DECLARE = Remedy(
    command="ip -br addr show dev {netdev}",
    effect=Words(
        "If the fabric is meant to be IPv6, declare commcheck_gid_family: ipv6; else assign the "
        "rail its IPv4 address.",
        "若网络本就使用 IPv6，请声明 commcheck_gid_family: ipv6；否则为该轨配置 IPv4 地址。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)

V1_ONLY = Cause(
    slug="gid-v1-only",
    title=Words("RoCE v1 only", "仅有 RoCE v1"),
    meaning=Words(
        "The port offers no RoCE v2 GID: its packets are not IP and stop at the first router.",
        "端口没有 RoCE v2 GID：报文不是 IP 报文，无法跨路由器转发。",
    ),
    remedies=(VERSION_TWO, ASSIGN),
)
NO_ADDRESS = Cause(
    slug="gid-no-address",
    title=Words("No routable RoCE v2 address", "没有可路由的 RoCE v2 地址"),
    meaning=Words(
        "The netdev has no IP address of the fabric's family, so there are only link-local GIDs.",
        "网卡没有配置对应地址族的 IP 地址，只有链路本地 GID。",
    ),
    remedies=(ASSIGN,),
)
LINK_LOCAL = Cause(
    slug="gid-link-local-ipv4",
    title=Words("RoCE v2 by link-local IPv4 only", "RoCE v2 仅有链路本地 IPv4 地址"),
    meaning=Words(
        "Nobody gave the netdev an address, so it took one of 169.254.0.0/16: no router carries "
        "it, and the next boot may bring another. Hosts below one leaf talk by it, racks do not.",
        "网卡没有被分配地址，自行使用了 169.254.0.0/16：路由器不转发，重启后还可能改变。"
        "同一交换机下可以通信，跨机架不行。",
    ),
    remedies=(ASSIGN,),
)
OTHER_FAMILY = Cause(
    slug="gid-other-family",
    title=Words("RoCE v2 by IPv6 only", "RoCE v2 仅有 IPv6 地址"),
    meaning=Words(
        "There is a routable IPv6 GID and none of IPv4; right on an IPv6 fabric, which is not "
        "declared.",
        "只有可路由的 IPv6 GID，没有 IPv4；若为 IPv6 网络则正常，但清单未声明。",
    ),
    remedies=(DECLARE,),
)


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """One routable v2 GID of the wanted family is enough, at whichever index."""
    second = [gid for gid in seen.table.gids if gid.roce_version == 2]
    ipv4 = [gid for gid in second if gid.ipv4 is not None]
    ipv6 = [gid for gid in second if gid.ipv4 is None and not gid.is_link_local]
    named = f"{rail.label} ({rail.netdev})"
    routed = [gid for gid in ipv4 if not gid.is_link_local]
    good = routed if want.family.value == "ipv4" else ipv6
    if good:
        return passed(
            f"{named} has RoCE v2 at GID {_shown(good)}", measured={"gid_index": good[0].index}
        )
    if not second:
        count = len(seen.table.gids)
        reason = f"{named} has {many(count, 'GID')}, none of RoCE v2, want one of {want.family}"
        return failed(V1_ONLY, reason, netdev=rail.netdev, hca=rail.hca)
    if ipv4 and want.family.value == "ipv4":
        reason = f"{named} has RoCE v2 at GID {_shown(ipv4)}, link-local, want one of the plan"
        return warned(LINK_LOCAL, reason, netdev=rail.netdev)
    if ipv6:
        reason = f"{named} has RoCE v2 by IPv6 only, at GID {_shown(ipv6)}, want ipv4"
        return warned(OTHER_FAMILY, reason, netdev=rail.netdev)
    found = _shown(ipv4) if ipv4 else "link-local addresses only"
    reason = f"{named} has RoCE v2 by {found}, want {want.family}"
    return failed(NO_ADDRESS, reason, netdev=rail.netdev)


def _shown(gids: list[Gid]) -> str:
    return ", ".join(f"{gid.index} {gid.ipv4 or gid.gid} on {gid.netdev}" for gid in gids[:4])


CHECK = Check(
    id="physical.roce-v2-gid",
    title=Words("Routable RoCE v2 address", "具备可路由的 RoCE v2 地址"),
    subject=Rail,
    seen=Seen,
    want=Want,
    judge=judge,
    needs=("physical.nic-link-up",),
    causes=(V1_ONLY, NO_ADDRESS, LINK_LOCAL, OTHER_FAMILY),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=ethernet_only,
)

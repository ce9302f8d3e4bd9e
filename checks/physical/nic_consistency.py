"""A rail is set as the same rail of its peers: MTU, speed, PFC, trust, DSCP map, GID index.

Why: what is declared is judged by the other checks. What nobody declared is right where all agree,
and a host that differs from all others was mended by hand, replaced or forgotten; collectives run
at the pace of that host.
Reads: what the other checks read anyhow (``ethtool DEV``, ``mlnx_qos -i DEV`` or ``dcb``, the MTU
and the GID table in sysfs), of every host. One verdict for each rail, compared with the rails of
that name on its peers.
By hand: the same command on three hosts, side by side.
Mend: ask first which side is right: the majority may be what was forgotten. Then set the odd one
like the others, with the command of the check that owns the setting (``commcheck explain``). An
address that two hosts have is a fail of both: the address plan says whose it is.
On the switch: a port set for the odd host alone follows the host's setting.
Healthy though odd: hosts in the middle of a change, and groups of different purpose: name those
that should be alike with ``commcheck_peers``. Two hosts, or no majority: nobody can say which one
is odd, only that they differ.
"""

from __future__ import annotations

from collections.abc import Iterable

from commcheck.applies import ethernet_only, qos_owner
from commcheck.check import Check, Nothing, Trait, Unread, to_compare, tries
from commcheck.formats.ethtool_link import ETHTOOL_LINK, EthtoolLink
from commcheck.formats.gid_table import GID_TABLE, Gid, GidTable
from commcheck.formats.ibv_devinfo import IBV_DEVINFO, IbvDevice
from commcheck.formats.netdev_mtu import NETDEV_MTU, NetdevMtu
from commcheck.formats.port_qos import PORT_QOS
from commcheck.formats.qos import Qos
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """Each may be unreadable; the check that owns it says so too."""

    link: EthtoolLink | Unread = tries(ETHTOOL_LINK)
    mtu: NetdevMtu | Unread = tries(NETDEV_MTU)
    qos: Qos | Unread = tries(PORT_QOS)
    gids: GidTable | Unread = tries(GID_TABLE)
    devices: tuple[IbvDevice, ...] | Unread = tries(IBV_DEVINFO)


ASK = Remedy(
    command="",
    effect=Words(
        "Find out which side is right; the majority may be what was forgotten. Then set the odd "
        "one alike, as the check of that setting says.",
        "先确认哪一方正确，多数也可能是遗漏的一方；再按对应检查的说明把不一致的改为一致。",
    ),
    precondition=Words("Host drained before anything is changed.", "更改前主机已排空。"),
)

DRIFT = Cause(
    slug="nic-setting-differs",
    title=Words("NIC set unlike its peers", "网卡设置与同组不一致"),
    meaning=Words(
        "Most peers have another value on this rail: mended by hand, replaced, or forgotten.",
        "多数同组主机在该轨上为另一取值：手工改动、更换或遗漏。",
    ),
    remedies=(ASK,),
)
GID_DRIFT = Cause(
    slug="gid-index-differs",
    title=Words("GID index unlike its peers", "GID 索引与同组不一致"),
    meaning=Words(
        "The RoCE v2 GID of the IPv4 address stands elsewhere in the table than on most peers: one "
        "NCCL_IB_GID_INDEX does not fit all hosts.",
        "IPv4 的 RoCE v2 GID 在表中位置与多数主机不同：同一个 NCCL_IB_GID_INDEX 无法通用。",
    ),
    remedies=(
        Remedy(
            command="unset NCCL_IB_GID_INDEX",
            effect=Words(
                "NCCL 2.21 and newer find the right GID on each host by themselves.",
                "NCCL 2.21 及以上会在各主机自行选择正确的 GID。",
            ),
            precondition=Words(
                "In the job's environment; a new start of the job.",
                "在作业环境中；需重启作业。",
            ),
        ),
        ASK,
    ),
)


TWICE = Cause(
    slug="rail-address-on-two-hosts",
    title=Words("Two hosts have one rail address", "两台主机使用同一轨地址"),
    meaning=Words(
        "Packets for one of the two arrive at the other: connections fail, now of the one and now "
        "of the other. Usually a host installed from the other's image or plan.",
        "发往其中一台的报文会到达另一台：连接时断时续。多为由同一镜像或规划重复安装所致。",
    ),
    remedies=(
        Remedy(
            command="ip -br -4 addr show dev {netdev}",
            effect=Words(
                "Shows what the host has. Compare with the address plan, give the one that is "
                "wrong its own, and keep it in the network configuration.",
                "显示本机地址。与地址规划核对，为有误的一台改用自己的地址并写入网络配置。",
            ),
            precondition=Words(
                "Reading is free; a change drops the rail's connections: host drained.",
                "读取无影响；修改会中断该轨连接：主机需已排空。",
            ),
        ),
    ),
)


def judge(seen: Seen, rail: Rail, _want: Nothing, _limits: Nothing) -> Verdict:
    """What is set, as a few plain values; what does not apply is left out."""
    values: dict[str, object] = {"board": _board(seen.devices, rail)}
    unread: dict[str, str] = {}
    if isinstance(seen.mtu, Unread):
        unread["MTU"] = seen.mtu.reason
    else:
        values["mtu_bytes"] = seen.mtu.mtu_bytes
    if isinstance(seen.link, Unread):
        unread["speed"] = seen.link.reason
    elif seen.link.speed_mbits is not None:
        values["speed_mbits"] = seen.link.speed_mbits
    if qos_owner(rail) is None:
        if isinstance(seen.qos, Unread):
            unread["PFC"] = seen.qos.reason
        else:
            values |= _of_qos(seen.qos)
    if isinstance(seen.gids, Unread):
        unread["GID index"] = seen.gids.reason
    elif (mine := _own(seen.gids, rail)) is not None:
        values["gid_index"] = mine.index
        port = next((gid.gid for gid in seen.gids.gids if gid.gid.startswith("fe80:")), None)
        if port is not None and not mine.is_link_local:
            values |= {"address": mine.ipv4, "port": port, "netdev": rail.netdev or "?"}
    return to_compare(values, unread)


def _board(devices: tuple[IbvDevice, ...] | Unread, rail: Rail) -> str:
    """What the card is: a 200G card is no peer of a 400G one. "" where nothing tells."""
    if isinstance(devices, Unread):
        return ""
    mine = (each for each in devices if each.hca == rail.hca)
    return next((each.board_id or str(each.part_id) for each in mine), "")


def _of_qos(qos: Qos) -> dict[str, object]:
    values: dict[str, object] = {"pfc_priorities": sorted(qos.pfc)}
    if qos.trust is not None:
        values["trust"] = qos.trust
    if qos.dscp_prio is not None and qos.trust != "pcp":
        values["dscp_map"] = _short(qos.dscp_prio)
    return values


def _short(dscp_prio: Iterable[tuple[int, int]]) -> str:
    """The map as its difference from the factory's, in which the priority is DSCP / 8."""
    odd = [f"{dscp}>{prio}" for dscp, prio in dscp_prio if prio != dscp >> 3]
    return ", ".join(odd) or "factory"


def _own(table: GidTable, rail: Rail) -> Gid | None:
    """The first RoCE v2 GID with an IPv4 address on the rail's own netdev."""
    mine = (
        gid
        for gid in table.gids
        if gid.roce_version == 2
        and gid.ipv4 is not None
        and (rail.bond or rail.netdev) in (None, gid.netdev)
    )
    return next(mine, None)


CHECK = Check(
    id="physical.nic-consistency",
    title=Words("NIC set as its peers", "网卡设置同组一致"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    judge=judge,
    needs=("physical.nic-link-up",),
    causes=(DRIFT, GID_DRIFT, TWICE),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=ethernet_only,
    peers=(
        Trait(
            "mtu_bytes",
            Words("MTU", "MTU"),
            DRIFT,
            owners=("physical.nic-mtu", "physical.rdma-mtu"),
        ),
        Trait(
            "speed_mbits",
            Words("speed in Mb/s", "速率（Mb/s）"),
            DRIFT,
            kin="board",
            owners=("physical.nic-speed",),
        ),
        Trait(
            "pfc_priorities",
            Words("PFC on", "PFC 优先级"),
            DRIFT,
            owners=("physical.pfc-enabled", "physical.pfc-only-expected"),
        ),
        Trait("trust", Words("trust", "信任模式"), DRIFT, owners=("physical.roce-trust-dscp",)),
        Trait(
            "dscp_map",
            Words("DSCP map", "DSCP 映射"),
            DRIFT,
            owners=("physical.roce-dscp-map", "physical.roce-trust-dscp"),
        ),
        Trait(
            "gid_index",
            Words("GID index", "GID 索引"),
            GID_DRIFT,
            owners=("physical.roce-v2-gid", "physical.roce-gid-index"),
        ),
        Trait("address", Words("address", "地址"), TWICE, fails=True, unique="port"),
    ),
)

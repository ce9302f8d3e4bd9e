"""The training NIC's MTU leaves room for RDMA packets of 4096 bytes.

Why: RoCE takes the largest of 1024, 2048 and 4096 that fits into the netdev's MTU with its headers.
At an MTU of 1500 that is 1024: four times the packets, 5 to 15 % less bandwidth, and a connection
with a peer of another MTU goes at the smaller one or fails.
Reads: ``/sys/class/net/DEV/mtu``. One verdict for each Ethernet rail.
By hand: ``ip -br link show DEV``; the result of it: ``ibv_devinfo -d HCA | grep active_mtu``.
Mend: the switch first, then the host; set it where the distribution keeps it (netplan,
NetworkManager, ifcfg), or it is gone after the next re-install.
On the switch: the MTU of port and VLAN must be larger than the host's on the whole path; 9216 is
usual. A smaller one drops full-size packets without a word.
Healthy though odd: 4200 and 9000 give the same RoCE MTU of 4096. An MTU of InfiniBand's IPoIB
netdev (2044, 4092, 65520) has nothing to do with RDMA and is not judged.
"""

from __future__ import annotations

from commcheck.applies import ethernet_only
from commcheck.check import Check, expects, failed, limit, passed, reads, warned
from commcheck.expect import MTU
from commcheck.formats.netdev_mtu import NETDEV_MTU, NetdevMtu
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The netdev's MTU."""

    mtu: NetdevMtu = reads(NETDEV_MTU)


@dataclass(frozen=True, slots=True)
class Want:
    """What the inventory says."""

    mtu: Wanted[int] = expects(MTU)


@dataclass(frozen=True, slots=True)
class Limits:
    """Below the floor RoCE packets are smaller."""

    floor_bytes: int = limit(
        4192, unit="bytes", source="kernel header sum: RoCE MTU 4096 + 96 bytes of headers"
    )


SET_MTU = Remedy(
    command="ip link set {netdev} mtu {mtu}",
    effect=Words(
        "A short interruption; new queue pairs use the new MTU. Gone at reboot unless it is also "
        "in the network configuration.",
        "短暂中断；新建 QP 使用新 MTU。未写入网络配置则重启后失效。",
    ),
    precondition=Words(
        "No job on the host; the switch ports of the whole path carry it already.",
        "主机上没有作业；整条路径的交换机端口已支持该 MTU。",
    ),
)

TOO_SMALL = Cause(
    slug="mtu-too-small",
    title=Words("MTU too small for RoCE 4096", "MTU 过小，RoCE 无法使用 4096"),
    meaning=Words(
        "The netdev's MTU forces smaller RDMA packets: usually the default of 1500 after a "
        "re-install.",
        "网卡 MTU 迫使 RDMA 使用更小的包：通常是重装后恢复为默认 1500。",
    ),
    remedies=(SET_MTU,),
)
BELOW_DECLARED = Cause(
    slug="mtu-below-expected",
    title=Words("MTU below the expected one", "MTU 低于期望值"),
    meaning=Words(
        "Large enough for full RDMA packets, yet not what the fleet should have.",
        "足以使用完整 RDMA 包，但与集群期望值不一致。",
    ),
    remedies=(SET_MTU,),
)


def judge(seen: Seen, rail: Rail, want: Want, limits: Limits) -> Verdict:
    """Fail below the floor, warn between it and the expectation."""
    mtu, wanted = seen.mtu.mtu_bytes, want.mtu.value
    measured = {"mtu_bytes": mtu}
    says = f"{rail.label} ({rail.netdev}) has MTU {mtu}"
    # A fabric that declares a small MTU on purpose is held to that, not to the floor.
    floor = min(limits.floor_bytes, wanted)
    if mtu < floor:
        return failed(
            TOO_SMALL,
            f"{says}, want {wanted}, at least {floor}",
            measured=measured,
            netdev=rail.netdev,
            mtu=wanted,
        )
    if mtu < wanted:
        return warned(
            BELOW_DECLARED,
            f"{says}, want {wanted}: {want.mtu.origin}",
            measured=measured,
            netdev=rail.netdev,
            mtu=wanted,
        )
    return passed(says, measured=measured)


CHECK = Check(
    id="physical.nic-mtu",
    title=Words("NIC MTU fits RoCE 4096", "网卡 MTU 满足 RoCE 4096"),
    subject=Rail,
    seen=Seen,
    want=Want,
    limits=Limits,
    judge=judge,
    needs=("physical.nic-link-up",),
    causes=(TOO_SMALL, BELOW_DECLARED),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=ethernet_only,
)

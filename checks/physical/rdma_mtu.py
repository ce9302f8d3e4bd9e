"""RDMA packets of the rail carry 4096 bytes.

Why: At an active MTU of 1024 there are four times the packets: 5 to 15 % less bandwidth, more work
for NIC and switch, and a connection with a peer of another MTU goes at the smaller one or fails.
Reads: ``ibv_devinfo -d HCA``. One verdict for each rail; a port that is down has no active MTU.
By hand: ``ibv_devinfo -d HCA | grep mtu``; on RoCE: ``ip -br link show DEV``.
Mend: RoCE takes it from the netdev's MTU, which has a check of its own; a netdev that was changed
while jobs ran gives new connections the new MTU. On InfiniBand the subnet manager sets it, by
partition.
On the switch: RoCE: port and VLAN carry more than the host's MTU. InfiniBand: ``mtu=5`` in the
partition of opensm's partitions.conf.
Healthy though odd: a fabric that is built for 2048 declares ``commcheck_rdma_mtu: 2048``.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, expects, failed, passed, reads, undecidable
from commcheck.errors import ParseError
from commcheck.expect import RDMA_MTU
from commcheck.formats.ibv_devinfo import IBV_DEVINFO, TOOL, IbvDevice
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The HCA and its ports, as user space sees them."""

    devices: tuple[IbvDevice, ...] = reads(IBV_DEVINFO)


@dataclass(frozen=True, slots=True)
class Want:
    """What the fabric is built for."""

    rdma_mtu: Wanted[int] = expects(RDMA_MTU)


LOOK = Remedy(
    command="ip -d link show {netdev}",
    effect=Words(
        "Shows the netdev, what lies under it (bond, VLAN, bridge) and the driver's own limit: "
        "every one of them needs the MTU. Then set the same MTU again, which makes RoCE take it.",
        "显示网卡及其下层设备（bond、VLAN、网桥）与驱动上限：每一层都需要该 MTU。"
        "随后重新设置同一 MTU，使 RoCE 生效。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
PARTITION = Remedy(
    command="",
    effect=Words(
        "Set the partition's MTU at the subnet manager (partitions.conf: mtu=5 is 4096) and let it "
        "sweep again.",
        "在子网管理器上设置分区 MTU（partitions.conf 中 mtu=5 即 4096），并重新扫描。",
    ),
    precondition=Words(
        "Every switch and port of the partition can carry it; running connections keep theirs.",
        "分区内所有交换机与端口均支持；已有连接保持原值。",
    ),
    who="network team",
)

ROCE_SMALL = Cause(
    slug="rdma-mtu-small",
    title=Words("RDMA packets are small", "RDMA 包过小"),
    meaning=Words(
        "The port uses smaller RDMA packets than it should, though its netdev's MTU has room: "
        "something under the netdev, or the driver, limits it.",
        "网卡 MTU 足够，但端口使用的 RDMA 包仍偏小：受其下层设备或驱动限制。",
    ),
    remedies=(LOOK,),
)
IB_SMALL = Cause(
    slug="ib-mtu-small",
    title=Words("InfiniBand MTU is small", "InfiniBand MTU 过小"),
    meaning=Words(
        "The subnet manager gave the port a smaller MTU than it could have.",
        "子网管理器为端口分配的 MTU 小于其能力。",
    ),
    remedies=(PARTITION,),
)


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """The active MTU of a port that is up."""
    port = next(
        (
            port
            for device in seen.devices
            for port in device.ports
            if (device.hca, port.number) == (rail.hca, rail.port)
        ),
        None,
    )
    if port is None:
        told = ", ".join(device.hca for device in seen.devices)
        raise ParseError(TOOL, told, f"port {rail.port} of {rail.hca}")
    wanted, active = want.rdma_mtu.value, port.active_mtu_bytes
    if not port.state.startswith("ACTIVE"):
        return undecidable(f"{rail.label} is {port.state}: its active MTU means nothing")
    measured = {"active_mtu_bytes": active, "max_mtu_bytes": port.max_mtu_bytes}
    if active >= wanted:
        return passed(f"{rail.label} has an active MTU of {active}", measured=measured)
    return failed(
        IB_SMALL if port.link_layer == "InfiniBand" else ROCE_SMALL,
        f"{rail.label} has an active MTU of {active}, want {wanted}",
        measured=measured,
        netdev=rail.netdev or "?",
    )


def not_applicable(rail: Rail) -> str | None:
    """EFA has no MTU to choose."""
    return f"{rail.label} is {rail.link_layer}" if rail.link_layer == "Unspecified" else None


CHECK = Check(
    id="physical.rdma-mtu",
    title=Words("RDMA packets carry 4096 bytes", "RDMA 包为 4096 字节"),
    subject=Rail,
    seen=Seen,
    want=Want,
    judge=judge,
    needs=("physical.rdma-port-active", "physical.nic-mtu"),
    causes=(ROCE_SMALL, IB_SMALL),
    platforms=frozenset({"gpu-roce", "gpu-ib"}),
    not_applicable=not_applicable,
)

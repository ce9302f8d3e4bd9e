"""The RDMA port of every rail is active.

Why: Only a port in state ACTIVE carries RDMA. One that is not is a lost rail: NCCL uses the others
and is slower, falls back to TCP sockets, or waits for it. On InfiniBand a port stays in INIT until
a subnet manager has found it, however good the cable is.
Reads: ``state`` and ``phys_state`` of ``/sys/class/infiniband``, as found at the start of the
session. One verdict for each rail.
By hand: ``rdma link``, ``ibstat HCA``; the subnet manager: ``sminfo`` (root).
Mend: the physical state says where to look. ``Polling``: no partner, so cable, optic or far port.
``Disabled``: shut by a command or by its driver. ``LinkErrorRecovery``: a bad cable.
``PortConfigurationTraining``: the two ends negotiate and never agree. ``LinkUp`` with state INIT:
the subnet manager.
On the switch: InfiniBand: is the port enabled, does the subnet manager (opensm, UFM) run and see
it? Ethernet: a link that is up and a port that is not is a matter of this host.
Healthy though odd: the dark second port of a card with one cable is no rail and is not judged.
``ACTIVE_DEFER`` carries traffic while the port recovers.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Check, Nothing, failed, passed, undecidable
from commcheck.model import Cause, Rail, Remedy, Verdict, Words

READS = Words("None, it only reads.", "无，只读。")
SHOW = Remedy(
    command="rdma link show {link}",
    effect=Words(
        "Shows state and physical state now, and the netdev: set that up if it is down.",
        "显示当前状态、物理状态与网卡名；若网卡未启用则先启用。",
    ),
    precondition=READS,
)
FAR_END = Remedy(
    command="",
    effect=Words(
        "Push the plug home, clean or replace cable and optic; have the far port opened.",
        "重新插紧、清洁或更换线缆与光模块；请对端开启端口。",
    ),
    precondition=Words(
        "The port is dark already; watch out not to pull a neighbour's cable.",
        "该端口本已断开；注意不要误拔相邻线缆。",
    ),
)
SET_UP = Remedy(
    command="mlxlink -d {pci} --port_state UP",
    driver="mlx5_core",
    effect=Words(
        "Opens the port (root, NVIDIA cards). With a netdev, ip link set DEV up does the same.",
        "开启端口（需 root，NVIDIA 网卡）。有网卡名时也可用 ip link set DEV up。",
    ),
    precondition=Words("Nobody shut it on purpose.", "确认不是有人有意关闭的。"),
)
SUBNET_MANAGER = Remedy(
    command="sminfo",
    effect=Words(
        "Shows the subnet manager, or that there is none (root). Then start opensm or UFM on its "
        "host, and see that it knows this port.",
        "显示子网管理器，或确认没有（需 root）。随后在其主机上启动 opensm 或 UFM，"
        "并确认它能发现该端口。",
    ),
    precondition=READS,
    who="network team",
)
RELOAD = Remedy(
    command="systemctl restart openibd",
    effect=Words(
        "Restarts the vendor's RDMA stack: kills every job on the host.",
        "重启厂商 RDMA 协议栈：会中断该主机上的所有作业。",
    ),
    precondition=Words(
        "The host is drained and the scheduler knows; SSH does not run over these NICs.",
        "主机已排空并通知调度器；SSH 不经过这些网卡。",
    ),
    driver="mlx5_core",
)

NO_PARTNER = Cause(
    slug="rdma-port-no-partner",
    title=Words("RDMA port finds no partner", "RDMA 端口找不到对端"),
    meaning=Words(
        "The port looks for a signal and there is none, or the two ends never agree.",
        "端口在等待信号但没有收到，或两端始终无法协商一致。",
    ),
    remedies=(SHOW, FAR_END),
)
DISABLED = Cause(
    slug="rdma-port-disabled",
    title=Words("RDMA port is disabled", "RDMA 端口被禁用"),
    meaning=Words(
        "The port was shut by a command or by its driver; the cable is not to blame.",
        "端口被命令或驱动关闭；与线缆无关。",
    ),
    remedies=(SHOW, SET_UP),
)
BAD_CABLE = Cause(
    slug="rdma-port-link-errors",
    title=Words("RDMA link keeps failing", "RDMA 链路反复出错"),
    meaning=Words(
        "The link comes up and breaks again: a bad cable, optic or connector.",
        "链路建立后反复中断：线缆、光模块或接头有问题。",
    ),
    remedies=(FAR_END,),
)
NO_MANAGER = Cause(
    slug="ib-no-subnet-manager",
    title=Words("No subnet manager for the port", "端口没有子网管理器"),
    meaning=Words(
        "The link is up and nobody gave the port an address: the subnet manager is down, or has "
        "not found the port.",
        "链路已建立，但没有分配地址：子网管理器未运行，或尚未发现该端口。",
    ),
    remedies=(SUBNET_MANAGER,),
)
NOT_ACTIVE = Cause(
    slug="rdma-port-not-active",
    title=Words("RDMA port is not active", "RDMA 端口未激活"),
    meaning=Words(
        "The physical link is there and the RDMA port is not: the driver or its netdev.",
        "物理链路正常但 RDMA 端口未激活：驱动或其网卡的问题。",
    ),
    remedies=(SHOW, RELOAD),
)

# Names of the kernel's IB_PORT_PHYS_STATE_* in sysfs.
BY_PHYS_STATE: Final = {
    "Polling": NO_PARTNER,
    "PortConfigurationTraining": NO_PARTNER,
    "Disabled": DISABLED,
    "Sleep": DISABLED,
    "LinkErrorRecovery": BAD_CABLE,
}


def judge(_seen: Nothing, rail: Rail, _want: Nothing, _limits: Nothing) -> Verdict:
    """State first; the physical state tells the cause."""
    state, phys = rail.state, rail.phys_state
    if state is None:
        return undecidable(f"sysfs does not tell the state of {rail.label}")
    says = f"{rail.label} is {state}" + (f" ({phys})" if phys else "")
    measured = {"state": state, "phys_state": phys or "not told"}
    if state in ("ACTIVE", "ACTIVE_DEFER"):
        return passed(says, measured=measured)
    if rail.fabric is None:
        return undecidable(
            f"{says}, and nothing says that it is a rail", turn_on="declare commcheck_nics"
        )
    cause = BY_PHYS_STATE.get(phys or "", NOT_ACTIVE)
    if cause is NOT_ACTIVE and rail.link_layer == "InfiniBand" and state in ("INIT", "ARMED"):
        cause = NO_MANAGER
    return failed(
        cause,
        f"{says}, want ACTIVE",
        measured=measured,
        link=f"{rail.hca}/{rail.port}",
        pci=rail.pci or "?",
    )


CHECK = Check(
    id="physical.rdma-port-active",
    title=Words("RDMA port is active", "RDMA 端口已激活"),
    subject=Rail,
    seen=Nothing,
    judge=judge,
    needs=(
        "physical.rdma-device-count",
        "physical.nic-link-type",
        "physical.nic-link-up",
        # A port without a subnet manager is one fault, and that check says it.
        "physical.ib-subnet-manager",
    ),
    causes=(NO_PARTNER, DISABLED, BAD_CABLE, NO_MANAGER, NOT_ACTIVE),
    platforms=frozenset({"gpu-roce", "gpu-ib", "gpu-efa"}),
)

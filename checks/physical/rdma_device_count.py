"""Every HCA that should carry training traffic is there.

Why: NCCL takes the NICs it finds. With one of eight gone the job still runs, an eighth slower at
best; with none it falls back to TCP sockets and crawls, and nothing says so.
Reads: ``/sys/class/infiniband`` and the ports it names, as found at the start of the session. One
verdict for each HCA that the inventory declares (``commcheck_nics``) or the host shows.
By hand: ``rdma link``, ``lspci -d 15b3:`` and ``lspci -d 14e4:``, ``dmesg | grep -E 'mlx5|bnxt'``.
Mend: load the modules first, it costs nothing. A card that ``lspci`` does not show either has
fallen off the bus: only a power cycle or a technician brings it back.
Healthy though odd: names differ between distributions (``mlx5_0``, ``rocep129s0``, ``bnxt_re0``). A
declared name that the host lacks while it shows another is a matter for the inventory. GPU hosts
whose network is TCP by design (Google's a3) have none: declare ``commcheck_platform: gpu-tcp``.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, expects, failed, passed
from commcheck.expect import NICS
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Want:
    """The declared HCAs."""

    nics: Wanted[tuple[str, ...] | None] = expects(NICS)


NO_HCA = "none"
"""Stands for the rails of a GPU host that has none and declares none."""

LOAD = Remedy(
    command="modprobe -a ib_uverbs mlx5_ib",
    effect=Words(
        "Loads the RDMA modules (Broadcom: bnxt_re, AWS: efa); nothing that runs is touched.",
        "加载 RDMA 内核模块（Broadcom 网卡用 bnxt_re，AWS 用 efa）；不影响正在运行的程序。",
    ),
    precondition=Words(
        "Keep -a: without it the second name is taken for a module parameter.",
        "必须带 -a：否则第二个名字会被当作模块参数。",
    ),
)
RESTART_STACK = Remedy(
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
ON_THE_BUS = Remedy(
    command="lspci -nn | grep -F '[02'",
    effect=Words(
        "Shows whether the card is on the bus. If not: power cycle (a reboot is not enough), then "
        "reseat or replace it. A rented guest: stop and start it, or hand it back.",
        "查看网卡是否还在 PCIe 总线上。若不在：断电重启（普通重启不够），再重新插拔或更换。"
        "租用的虚拟机：停止后重新启动，或退还给云厂商。",
    ),
    precondition=Words(
        "Drain the host before the power cycle; keep dmesg for the vendor.",
        "断电前排空主机；保留 dmesg 给厂商。",
    ),
    who="vendor",
)
DECLARE = Remedy(
    command="rdma link",
    effect=Words(
        "Shows the names the host uses; put them into commcheck_nics if they only changed.",
        "显示主机上的实际名称；若只是改名，请更新 commcheck_nics。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)

NO_DEVICE = Cause(
    slug="no-rdma-device",
    title=Words("No RDMA device at all", "主机上没有任何 RDMA 设备"),
    meaning=Words(
        "The kernel shows no RDMA device: modules not loaded, driver not bound, cards gone, or a "
        "container without them.",
        "内核没有任何 RDMA 设备：模块未加载、驱动未绑定、网卡丢失，或容器未映射设备。",
    ),
    remedies=(ON_THE_BUS, LOAD, RESTART_STACK),
)
HCA_MISSING = Cause(
    slug="hca-missing",
    title=Words("A declared HCA is missing", "声明的 HCA 不存在"),
    meaning=Words(
        "The inventory names an HCA that the host does not have: that rail is lost.",
        "清单中声明的 HCA 在主机上不存在：该轨（rail）已丢失。",
    ),
    remedies=(DECLARE, ON_THE_BUS, LOAD),
)


def judge(_seen: Nothing, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """Presence only: a port that is down is a matter of its link."""
    if rail.present:
        netdev = f", netdev {rail.netdev}" if rail.netdev else ""
        return passed(f"{rail.label} is there, port {rail.state or 'state not told'}{netdev}")
    if rail.hca == NO_HCA:
        return failed(NO_DEVICE, "the host shows no RDMA device at all, want its training NICs")
    by = f": {want.nics.origin}" if want.nics.value else ""
    return failed(HCA_MISSING, f"no {rail.label} on this host, want it{by}")


CHECK = Check(
    id="physical.rdma-device-count",
    title=Words("Every training HCA is there", "训练用 HCA 齐全"),
    subject=Rail,
    seen=Nothing,
    want=Want,
    judge=judge,
    causes=(NO_DEVICE, HCA_MISSING),
    platforms=frozenset({"gpu-roce", "gpu-ib", "gpu-efa", "unknown"}),
)

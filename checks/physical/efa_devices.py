"""Every EFA device can be used: libfabric's EFA provider opens it.

Why: On AWS, NCCL reaches EFA only by its OFI plugin and libfabric. A device that libfabric does not
open is not used; where it opens none, NCCL falls back to TCP over the instance's ENA and crawls.
Reads: ``fi_info -p efa``, and the devices in ``/sys/class/infiniband``. One verdict for the host.
By hand: ``fi_info -p efa -t FI_EP_RDM``; ``lspci -d 1d0f:``; ``ls /sys/class/infiniband``.
Mend: the EFA installer brings driver, libfabric and plugin that fit each other. Devices that sysfs
lacks, too, were not attached when the instance was started: that is its launch template's.
Healthy though odd: each device has two endpoints (``-rdm``, ``-dgrm``) and counts once. Link layer,
PFC, GIDs and MTU mean nothing here: there is nothing to set.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, expects, failed, passed, reads
from commcheck.expect import EFA_COUNT
from commcheck.formats.fi_info import FI_INFO
from commcheck.lazy import dataclass
from commcheck.model import Cause, Machine, Remedy, Verdict, Wanted, Words
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Seen:
    """The devices that libfabric opens."""

    opened: frozenset[str] = reads(FI_INFO)


@dataclass(frozen=True, slots=True)
class Want:
    """What the inventory says of the instance."""

    count: Wanted[int | None] = expects(EFA_COUNT)


SHOW = Remedy(
    command="fi_info -p efa",
    effect=Words(
        "Shows what libfabric opens, and complains of what it cannot.",
        "显示 libfabric 可打开的设备及其报错。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
INSTALL = Remedy(
    command="modinfo efa",
    effect=Words(
        "Shows the driver. Install the current EFA installer: driver, libfabric and plugin.",
        "显示驱动版本。请安装最新的 EFA installer：驱动、libfabric 与插件。",
    ),
    precondition=Words(
        "Reading is free; the installer needs a drained host.", "读取无影响；安装需先排空主机。"
    ),
)
ATTACH = Remedy(
    command="",
    effect=Words(
        "Attach the missing interfaces in the launch template and start the instance anew.",
        "在启动模板中添加缺少的接口并重新启动实例。",
    ),
    precondition=Words("Host drained.", "主机已排空。"),
)

NO_PROVIDER = Cause(
    slug="efa-not-usable",
    title=Words("libfabric opens no EFA device", "libfabric 无法使用 EFA 设备"),
    meaning=Words(
        "Driver, permissions or libfabric's provider are missing: NCCL goes over TCP.",
        "缺少驱动、权限或 libfabric 的 EFA provider：NCCL 会退回 TCP。",
    ),
    remedies=(INSTALL, SHOW),
)
SOME = Cause(
    slug="efa-device-not-usable",
    title=Words("An EFA device cannot be used", "部分 EFA 设备不可用"),
    meaning=Words(
        "The kernel shows devices that libfabric does not open: their share of bandwidth is lost.",
        "内核可见而 libfabric 未打开的设备：损失其带宽。",
    ),
    remedies=(SHOW, INSTALL),
)
FEWER = Cause(
    slug="efa-devices-missing",
    title=Words("EFA devices are missing", "EFA 设备数量不足"),
    meaning=Words(
        "The instance has fewer EFA devices than the inventory says it should.",
        "实例的 EFA 设备少于清单声明的数量。",
    ),
    remedies=(ATTACH, SHOW),
)


def judge(seen: Seen, machine: Machine, want: Want, _limits: Nothing) -> Verdict:
    """None, then those that sysfs has and libfabric has not, then the number."""
    ports = (*machine.rails, *machine.other_ports)
    there = sorted({each.hca for each in ports if each.present and each.driver == "efa"})
    opened, count = seen.opened, want.count.value
    measured = {"opened": len(opened), "in_sysfs": len(there)}
    if not opened:
        reason = f"fi_info finds no EFA device, sysfs has {len(there)}, want each in both"
        return failed(NO_PROVIDER, reason, measured=measured)
    if shut := [name for name in there if name not in opened]:
        reason = f"libfabric does not open {', '.join(shut)}, want all {len(there)}"
        return failed(SOME, reason, measured=measured)
    if count is not None and len(opened) < count:
        reason = f"{many(len(opened), 'EFA device')}, want {count}: {want.count.origin}"
        return failed(FEWER, reason, measured=measured)
    return passed(f"libfabric opens {many(len(opened), 'EFA device')}", measured=measured)


CHECK = Check(
    id="physical.efa-devices",
    title=Words("EFA devices can be used", "EFA 设备可用"),
    subject=Machine,
    seen=Seen,
    want=Want,
    judge=judge,
    causes=(NO_PROVIDER, SOME, FEWER),
    platforms=frozenset({"gpu-efa"}),
)

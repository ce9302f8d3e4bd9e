"""NICs of one model have the same firmware and driver on all hosts.

Why: firmware decides how a NIC retries, paces and reports. A host that was missed in an upgrade has
old faults that look like faults of the fabric, and it is the one that was never suspected.
Reads: firmware and board of ``ibv_devinfo -d HCA``, version of the driver's module in sysfs; of
every host. One verdict for each rail, compared with the rails of that name on its peers.
By hand: ``ethtool -i DEV`` on several hosts.
Mend: flash with the vendor's tool on drained hosts, one at a time, then reset or reboot; the fabric
team may want the odd one to stay as it is: ask.
On the switch: nothing.
Healthy though odd: a host that was upgraded first. Cards of different boards are not compared with
each other; the kernel's own driver has no version of its own.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, Trait, Unread, reads, to_compare, tries
from commcheck.errors import Unjudgeable
from commcheck.formats.ibv_devinfo import IBV_DEVINFO, IbvDevice
from commcheck.formats.module_version import MODULE_VERSION, ModuleVersion
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The card as verbs tell it, and the module that drives it."""

    devices: tuple[IbvDevice, ...] = reads(IBV_DEVINFO)
    module: ModuleVersion | Unread = tries(MODULE_VERSION)


FLASH = Remedy(
    command="mlxfwmanager --query -d {pci}",
    effect=Words(
        "Shows the card's firmware and what is newer (root). Flashing is the vendor's tool's "
        "business; the card needs a reset afterwards.",
        "显示网卡固件与可用的新版本（需 root）。升级由厂商工具完成，之后需复位网卡。",
    ),
    precondition=Words(
        "None to query. To flash: host drained, the owner's consent, console access.",
        "查询无前提。升级须主机已排空、获负责人同意、有控制台。",
    ),
    driver="mlx5_core",
)
SHOWN = Remedy(
    command="devlink dev info pci/{pci}",
    effect=Words(
        "Shows the firmware that runs and the one that is stored, by the kernel, whoever made the "
        "card: where the stored one is newer, a reset or a reboot is still due.",
        "由内核显示正在运行与已存储的固件，不限厂商：若已存储的较新，说明尚需复位或重启。",
    ),
    precondition=Words("None.", "无。"),
)
DRIVER = Remedy(
    command="modinfo -F version $(basename $(readlink -f "
    "/sys/class/infiniband/{hca}/device/driver/module))",
    effect=Words(
        "Shows the module on disk: where it is newer than the loaded one, a restart of the driver "
        "or a reboot is still due.",
        "显示磁盘上的模块版本：若比已加载的新，说明尚需重载驱动或重启。",
    ),
    precondition=Words(
        "None to look. Restarting the driver kills every job on the host.",
        "查看无前提。重载驱动会中断主机上的所有作业。",
    ),
)

FIRMWARE = Cause(
    slug="nic-firmware-differs",
    title=Words("NIC firmware unlike its peers", "网卡固件与同组不一致"),
    meaning=Words(
        "Most cards of this board have another firmware: an upgrade that was not finished, or a "
        "replaced card.",
        "同型号网卡大多为另一固件版本：升级未完成，或更换过网卡。",
    ),
    remedies=(FLASH, SHOWN),
)
OTHER_DRIVER = Cause(
    slug="nic-driver-differs",
    title=Words("NIC driver unlike its peers", "网卡驱动与同组不一致"),
    meaning=Words(
        "Most hosts run another version of the NIC's driver: an upgrade without a reboot, or a "
        "host that was missed.",
        "多数主机的网卡驱动版本不同：升级后未重启，或遗漏了该主机。",
    ),
    remedies=(DRIVER,),
)


def judge(seen: Seen, rail: Rail, _want: Nothing, _limits: Nothing) -> Verdict:
    """Firmware by board, driver by board."""
    device = next((each for each in seen.devices if each.hca == rail.hca), None)
    if device is None:
        raise Unjudgeable(f"ibv_devinfo does not tell of {rail.hca}")
    values: dict[str, object] = {
        "board": device.board_id or f"{device.vendor_id:#06x}:{device.part_id}",
        "firmware": device.firmware,
        "hca": rail.hca,
        **({"pci": rail.pci} if rail.pci else {}),
    }
    if isinstance(seen.module, Unread):
        return to_compare(values, {"driver version": seen.module.reason})
    values["driver_version"] = seen.module.version or "the kernel's own"
    return to_compare(values)


CHECK = Check(
    id="physical.nic-firmware",
    title=Words("NIC firmware and driver as its peers", "网卡固件与驱动同组一致"),
    subject=Rail,
    seen=Seen,
    judge=judge,
    needs=("physical.rdma-device-count",),
    causes=(FIRMWARE, OTHER_DRIVER),
    platforms=frozenset({"gpu-roce", "gpu-ib"}),
    peers=(
        Trait("firmware", Words("firmware", "固件"), FIRMWARE, kin="board"),
        Trait("driver_version", Words("driver", "驱动"), OTHER_DRIVER, kin="board"),
    ),
)

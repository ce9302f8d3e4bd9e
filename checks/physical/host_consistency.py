"""A host has the GPU driver and the rail names of its peers.

Why: one driver of another release among many is found by nobody and explains what nobody can:
another NCCL path, another default, another fault. Rails that are named otherwise make one
``NCCL_IB_HCA`` wrong for that host: it uses fewer NICs than the others, or none.
Reads: ``/proc/driver/nvidia/version``, ``nvidia-smi -L`` and the ports of RDMA, of every host. One
verdict for each host, compared with hosts of the same GPU.
By hand: ``cat /proc/driver/nvidia/version``; ``rdma link`` or ``ls -l /sys/class/infiniband``.
Mend: the driver as on the peers, then a reboot. Names: the same udev rules and kernel options
(``net.ifnames``) on all hosts; until then ``NCCL_IB_HCA`` by host.
On the switch: nothing.
Healthy though odd: a host that was upgraded first; hosts of another generation are not compared. A
group of different purpose is told apart with ``commcheck_peers``.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, Trait, Unread, to_compare, tries
from commcheck.formats.nvidia_smi_list import NVIDIA_SMI_LIST, GpuList
from commcheck.formats.nvidia_version import NVIDIA_VERSION, NvidiaVersion
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """Each may be unreadable; physical.gpu-driver says so too."""

    driver: NvidiaVersion | Unread = tries(NVIDIA_VERSION)
    gpus: GpuList | Unread = tries(NVIDIA_SMI_LIST)


UPGRADE = Remedy(
    command="cat /proc/driver/nvidia/version",
    effect=Words(
        "Shows the module that is loaded. Install the peers' release and reboot; fabric manager "
        "and libraries go with it.",
        "显示已加载的模块。安装与同组一致的版本并重启；fabric manager 与库须一同升级。",
    ),
    precondition=Words(
        "None to look. To change: host drained.",
        "查看无前提；更改须主机已排空。",
    ),
)
NAMES = Remedy(
    command="rdma link",
    effect=Words(
        "Shows HCAs and netdevs. Compare udev rules and kernel options with a peer; a card in "
        "another slot is named by its slot.",
        "显示 HCA 与网卡名。与同组主机对比 udev 规则和内核参数；换了插槽的网卡会按插槽命名。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)

OTHER_DRIVER = Cause(
    slug="gpu-driver-differs",
    title=Words("GPU driver unlike its peers", "GPU 驱动与同组不一致"),
    meaning=Words(
        "Most hosts with this GPU run another driver: an upgrade without a reboot, or a host that "
        "was missed.",
        "同型号 GPU 的主机大多为另一驱动版本：升级后未重启，或遗漏了该主机。",
    ),
    remedies=(UPGRADE,),
)
OTHER_NAMES = Cause(
    slug="rail-names-differ",
    title=Words("Rails named unlike its peers", "各轨命名与同组不一致"),
    meaning=Words(
        "HCAs or netdevs have other names than on most peers: one NCCL_IB_HCA or "
        "NCCL_SOCKET_IFNAME does not fit all hosts.",
        "HCA 或网卡名与多数主机不同：同一个 NCCL_IB_HCA 或 NCCL_SOCKET_IFNAME 无法通用。",
    ),
    remedies=(NAMES,),
)


def judge(seen: Seen, machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """What is loaded and what is named how."""
    values: dict[str, object] = {"gpu": _gpu(seen.gpus)}
    unread: dict[str, str] = {}
    if isinstance(seen.driver, Unread):
        unread["GPU driver"] = seen.driver.reason
    else:
        values["gpu_driver"] = seen.driver.version
    names = [f"{rail.label}={rail.netdev or '-'}" for rail in machine.rails if rail.present]
    if names:
        values["rail_names"] = names
    return to_compare(values, unread)


def _gpu(gpus: GpuList | Unread) -> str:
    """The model; "" where the driver lists none."""
    return "" if isinstance(gpus, Unread) or not gpus.gpus else gpus.gpus[0].name


CHECK = Check(
    id="physical.host-consistency",
    title=Words("GPU driver and names as its peers", "GPU 驱动与命名同组一致"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    needs=("physical.gpu-driver",),
    causes=(OTHER_DRIVER, OTHER_NAMES),
    platforms=GPUS,
    peers=(
        Trait(
            "gpu_driver",
            Words("GPU driver", "GPU 驱动"),
            OTHER_DRIVER,
            kin="gpu",
            owners=("physical.gpu-driver",),
        ),
        Trait(
            "rail_names",
            Words("rails", "轨"),
            OTHER_NAMES,
            kin="gpu",
            owners=("physical.rdma-device-count",),
        ),
    ),
)

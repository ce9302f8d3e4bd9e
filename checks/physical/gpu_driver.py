"""The NVIDIA driver runs and lists every GPU.

Why: Without the driver no job starts. With a GPU off the bus the ranks of that host are fewer than
the launcher thinks, and the collective waits for ever.
Reads: ``nvidia-smi -L``, and the GPUs that the kernel sees on PCI, or that a container was given;
``/proc/self/cgroup``, for the Slurm job that the session is in.
By hand: ``nvidia-smi -L``; ``lspci -d 10de: | grep -E '3D|VGA'``; ``dmesg | grep -E 'NVRM|Xid'``
(Xid 79: fallen off the bus).
Mend: after a driver upgrade without a reboot the library is newer than the loaded module: reboot.
A GPU off the bus comes back only with a power cycle, if at all; do not reset it below a job.
Healthy though odd: with MIG the list has lines of instances below each GPU; they are not counted.
A host may have any number of GPUs: without ``commcheck_gpu_count`` the list is compared with PCI,
that of a pod with the device files that it was given (``/dev/nvidiaN``). In a Slurm job only its
own GPUs are seen, where the site constrains devices: a warning. A GPU that vfio-pci holds belongs
to a guest: a warning where the number is not declared. A corrupted InfoROM stops no job, but the
GPU keeps no record of its errors and repairs any more: a warning, too.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import (
    Check,
    Nothing,
    Unread,
    expects,
    failed,
    passed,
    reads,
    tries,
    undecidable,
    warned,
)
from commcheck.expect import GPU_COUNT
from commcheck.formats.nvidia_gpu import NVIDIA_GPU, NvidiaGpu
from commcheck.formats.nvidia_smi_list import NVIDIA_SMI_LIST, DriverTrouble, GpuList
from commcheck.formats.own_job import OWN_JOB
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Wanted, Words
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Seen:
    """What the driver lists, where they are on PCI, and the Slurm job from which it is asked."""

    listed: GpuList = reads(NVIDIA_SMI_LIST)
    gpus: tuple[NvidiaGpu, ...] | Unread = tries(NVIDIA_GPU)
    job: str | Unread = tries(OWN_JOB)


@dataclass(frozen=True, slots=True)
class Want:
    """How many there should be, where that is declared."""

    count: Wanted[int | None] = expects(GPU_COUNT)


REBOOT = Remedy(
    command="systemctl reboot",
    effect=Words(
        "Loads the driver that matches the installed library; ends everything on the host.",
        "加载与已安装库匹配的驱动；主机上的所有任务都会终止。",
    ),
    precondition=Words(
        "The host is drained and the scheduler knows.",
        "主机已排空并通知调度器。",
    ),
)
LOAD = Remedy(
    command="modprobe nvidia",
    effect=Words(
        "Loads the driver, or says why it cannot: then look at dmesg, rebuild it with dkms for the "
        "running kernel, or install it.",
        "加载驱动，或给出失败原因：随后查看 dmesg、用 dkms 为当前内核重新编译，或安装驱动。",
    ),
    precondition=Words(
        "The driver of the GPU operator's container is loaded by that container: restart it there.",
        "若驱动由 GPU Operator 容器提供，应在该容器中重启加载。",
    ),
)
LOOK_FOR_XID = Remedy(
    command="dmesg -T",
    effect=Words(
        "Shows the Xid codes. Xid 79 or nothing on PCI: power cycle (a reboot is not enough), then "
        "reseat; again: replace the GPU.",
        "查看 Xid 码。若为 Xid 79 或 PCIe 上已不可见：断电重启（普通重启不够），"
        "再重新插拔；复发则更换。",
    ),
    precondition=Words(
        "Drain the host before the power cycle; keep nvidia-bug-report.log.gz for the vendor.",
        "断电前排空主机；保留 nvidia-bug-report.log.gz 给厂商。",
    ),
    who="vendor",
)
DECLARE = Remedy(
    command="nvidia-smi -L",
    effect=Words(
        "Shows the GPUs; set commcheck_gpu_count to what the host has.",
        "显示 GPU 列表；将 commcheck_gpu_count 改为实际数量。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)

DEVICE_FILES = Remedy(
    command="ls -l /dev/nvidiactl /dev/nvidia0",
    effect=Words(
        "In the container: the files are there and nobody may open them. Start the container anew; "
        "give it its devices by CDI, so that a reload of systemd on the node takes none away.",
        "在容器内执行：设备文件存在但无法打开。请重启容器；并改用 CDI 分配设备，"
        "避免节点上 systemd 重载后再次失去访问权限。",
    ),
    precondition=Words(
        "Reading is free; a restart ends what runs in the container.",
        "读取无影响；重启会终止容器内的任务。",
    ),
)
OF_THE_JOB = Remedy(
    command="scontrol -d show job {job}",
    effect=Words(
        "Shows which GPUs the job was given (GRES, IDX). Ask the others from a session outside of "
        "jobs, or from a job that has the whole host.",
        "显示该作业分配到的 GPU（GRES、IDX）。其余 GPU 请从作业外的会话、或占用整机的作业中检查。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
INFOROM_LOG = Remedy(
    command="nvidia-bug-report.sh",
    effect=Words(
        "Collects what the vendor wants. A reboot of the drained host mends some; told again "
        "afterwards: the GPU is exchanged.",
        "收集厂商所需信息。排空主机后重启有时可恢复；之后仍报告则更换 GPU。",
    ),
    precondition=Words(
        "Takes minutes; better on a drained host.", "耗时数分钟；最好在排空后执行。"
    ),
    who="vendor",
)

MISMATCH = Cause(
    slug="gpu-driver-mismatch",
    title=Words("Driver and library differ", "驱动与库版本不一致"),
    meaning=Words(
        "The driver package was upgraded and the old module is still loaded: no CUDA program can "
        "start.",
        "驱动包已升级但仍加载旧内核模块：任何 CUDA 程序都无法启动。",
    ),
    remedies=(REBOOT,),
)
NO_DRIVER = Cause(
    slug="gpu-driver-not-loaded",
    title=Words("GPU driver is not loaded", "GPU 驱动未加载"),
    meaning=Words(
        "nvidia-smi cannot reach the driver: not loaded, or not built for the running kernel.",
        "nvidia-smi 无法与驱动通信：未加载，或未为当前内核编译。",
    ),
    remedies=(LOAD, REBOOT),
)
NO_GPU = Cause(
    slug="gpu-none",
    title=Words("Driver finds no GPU", "驱动未发现 GPU"),
    meaning=Words(
        "The driver is loaded and has no device: cards gone from the bus, bound to another driver, "
        "or not given to this container.",
        "驱动已加载但没有设备：GPU 从总线丢失、被其他驱动占用，或未分配给该容器。",
    ),
    remedies=(LOOK_FOR_XID,),
)
LOST = Cause(
    slug="gpu-lost",
    title=Words("GPU fell off the bus", "GPU 掉卡"),
    meaning=Words(
        "The driver knows the GPU and cannot talk to it any more.",
        "驱动知道该 GPU 但已无法与之通信。",
    ),
    remedies=(LOOK_FOR_XID,),
)
MISSING = Cause(
    slug="gpu-missing",
    title=Words("A GPU is missing", "GPU 数量不足"),
    meaning=Words(
        "The driver lists fewer GPUs than the host should have.",
        "驱动列出的 GPU 少于主机应有数量。",
    ),
    remedies=(LOOK_FOR_XID,),
)
CUT_OFF = Cause(
    slug="gpu-container-cut-off",
    title=Words("Container has lost access to its GPUs", "容器失去 GPU 访问权限"),
    meaning=Words(
        "The driver library may not open the GPUs' device files any more: mostly a daemon-reload "
        "of systemd on the node took them from the container's cgroup. The GPUs are well.",
        "驱动库无法再打开 GPU 设备文件：多为节点上执行 systemctl daemon-reload 后，"
        "容器 cgroup 的设备权限被清除。GPU 本身正常。",
    ),
    remedies=(DEVICE_FILES,),
)
IN_JOB = Cause(
    slug="gpu-outside-of-job",
    title=Words("GPUs outside of the session's job are not seen", "会话所在作业之外的 GPU 不可见"),
    meaning=Words(
        "The session is in a Slurm job, which sees only the GPUs that it was given: the others "
        "cannot be told from lost ones.",
        "会话处于 Slurm 作业内，只能看到分配给该作业的 GPU：其余 GPU 是否掉卡无法判断。",
    ),
    remedies=(OF_THE_JOB,),
)
GUESTS = Cause(
    slug="gpu-held-for-guests",
    title=Words("GPUs are held for guests", "GPU 被预留给虚拟机"),
    meaning=Words(
        "vfio-pci holds the GPU, so that a virtual machine may have it: the host's own driver has "
        "none of it. The GPU itself is well, as far as the host can tell.",
        "GPU 由 vfio-pci 占用以直通给虚拟机，主机驱动无法使用；就主机所见 GPU 本身并无故障。",
    ),
    remedies=(
        Remedy(
            command="lspci -nnk -d 10de:",
            effect=Words(
                "Shows which driver holds each GPU. One that no guest has is given back by "
                "driverctl unset-override PCI, on a drained host. Those of guests are asked there.",
                "查看每块 GPU 的占用驱动。未被虚拟机使用的，可在排空主机后用 "
                "driverctl unset-override PCI 归还；已直通的请在虚拟机内检查。",
            ),
            precondition=Words("None, it only reads.", "无，只读。"),
        ),
    ),
)
INFOROM = Cause(
    slug="gpu-inforom-corrupted",
    title=Words("GPU's InfoROM is corrupted", "GPU 的 InfoROM 损坏"),
    meaning=Words(
        "The small store in which the GPU keeps its errors, repairs and settings cannot be read: "
        "jobs run, but a bad row of memory is not remembered over a reset.",
        "GPU 用于保存错误、修复记录与设置的存储无法读取：作业可运行，但坏行记录在复位后会丢失。",
    ),
    remedies=(INFOROM_LOG,),
)
MORE = Cause(
    slug="gpu-more-than-declared",
    title=Words("More GPUs than declared", "GPU 多于声明数量"),
    meaning=Words(
        "The host has more GPUs than the inventory says: the inventory is out of date.",
        "主机 GPU 多于清单声明：清单可能过期。",
    ),
    remedies=(DECLARE,),
)

BY_TROUBLE: Final = {
    DriverTrouble.MISMATCH: MISMATCH,
    DriverTrouble.NO_DRIVER: NO_DRIVER,
    DriverTrouble.NO_DEVICES: NO_GPU,
    DriverTrouble.NO_ACCESS: CUT_OFF,
}


def judge(seen: Seen, machine: Machine, want: Want, _limits: Nothing) -> Verdict:
    """Driver first, then lost GPUs, then the count against inventory or PCI."""
    listed = seen.listed
    job = "" if isinstance(seen.job, Unread) or machine.in_container else seen.job
    held = f"vfio-pci holds {len(machine.for_guests)} for guests: {', '.join(machine.for_guests)}"
    if listed.trouble is not None:
        if machine.for_guests and not machine.accelerators:
            return undecidable(
                f"nvidia-smi lists no GPU, and {held}",
                turn_on="name the guests in the inventory instead of this host",
            )
        return _without_gpus(listed.trouble, machine, job)
    count = len(listed.gpus)
    measured = {"gpu_count": count}
    if listed.lost:
        others = f"{count} others answer" if count else "nvidia-smi tells nothing of the others"
        reason = f"no answer from GPU {', '.join(listed.lost)}; {others}"
        return failed(LOST, reason, measured=measured)
    on_pci = sum(each.vendor == "nvidia" for each in machine.accelerators)
    if want.count.value is not None:
        wanted, by = want.count.value, str(want.count.origin)
    else:
        where = "given to this container" if machine.in_container else "on PCI"
        wanted, by = max(on_pci, count), where
    reason = f"{many(count, 'GPU')}, want {wanted}: {by}"
    if count < wanted and job:
        reason += f"; asked from Slurm's job {job}, which sees only the GPUs that it was given"
        return warned(IN_JOB, reason, measured=measured, job=job)
    if on_pci <= count < wanted <= count + len(machine.for_guests):
        return failed(GUESTS, f"{reason}; {held}", measured=measured)
    if count < wanted:
        return failed(MISSING, reason + _absent(seen, machine), measured=measured)
    if listed.corrupted:
        reason = f"InfoROM is corrupted on {', '.join(listed.corrupted)} of {many(count, 'GPU')}"
        return warned(INFOROM, reason, measured=measured)
    if machine.for_guests and want.count.value is None:
        return warned(GUESTS, f"{many(count, 'GPU')}; {held}", measured=measured)
    if count > wanted:
        return warned(MORE, reason, measured=measured)
    names = ", ".join(dict.fromkeys(gpu.name for gpu in listed.gpus))
    undeclared = "" if want.count.value is not None else "; their number is not declared"
    return passed(f"{many(count, 'GPU')}: {names}{undeclared}", measured=measured)


def _absent(seen: Seen, machine: Machine) -> str:
    """Which are on PCI, and the driver has none of them: it could not start them."""
    if isinstance(seen.gpus, Unread):
        return ""
    there = [each.pci for each in machine.accelerators if each.vendor == "nvidia" and each.pci]
    # The driver writes a domain of eight digits, the kernel one of four.
    known = {gpu.pci.removeprefix("0000") for gpu in seen.gpus}
    absent = [pci for pci in there if pci not in known]
    return f"; on PCI without driver: {', '.join(absent)}" if absent else ""


def _without_gpus(trouble: DriverTrouble, machine: Machine, job: str) -> Verdict:
    reason = f"nvidia-smi lists no GPU: {trouble}"
    if trouble is DriverTrouble.NO_DEVICES and job:
        return undecidable(
            f"{reason}; asked from Slurm's job {job}, which may have been given none",
            turn_on="ask from a session outside of jobs",
        )
    if trouble is DriverTrouble.NO_ACCESS and not machine.in_container:
        return undecidable(
            f"{reason}: Failed to initialize NVML: Unknown Error",
            turn_on="look at dmesg for NVRM and Xid, and at the rights of /dev/nvidiactl",
        )
    return failed(BY_TROUBLE[trouble], reason)


CHECK = Check(
    id="physical.gpu-driver",
    title=Words("GPU driver lists every GPU", "GPU 驱动正常且 GPU 齐全"),
    subject=Machine,
    seen=Seen,
    want=Want,
    judge=judge,
    causes=(MISMATCH, NO_DRIVER, NO_GPU, CUT_OFF, LOST, MISSING, IN_JOB, GUESTS, INFOROM, MORE),
    platforms=GPUS,
)

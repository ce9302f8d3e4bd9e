"""The IOMMU does not translate the addresses of NICs and GPUs on bare metal.

Why: With translation on, every transfer between NIC and GPU is looked up and goes by way of the
root complex: bandwidth falls, and GPUDirect may hang. The kernel's default does that.
Reads: ``/sys/kernel/iommu_groups``. One verdict for each host.
By hand: ``cat /sys/kernel/iommu_groups/*/type | sort | uniq -c``; ``grep -o iommu=pt
/proc/cmdline``.
Mend: boot with ``iommu=pt`` (with ``intel_iommu=on`` or the AMD one where it is on), so that the
host's own devices pass through. On a host for guests only with its owner.
Healthy though odd: no groups at all is an IOMMU that is off. Other devices (USB, thunderbolt) may
be translated. Grace boards need translation (SMMU, ATS). A guest has the host's.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import (
    Check,
    Nothing,
    Unread,
    not_applicable,
    passed,
    reads,
    tries,
    undecidable,
    warned,
)
from commcheck.formats.iommu import SYSFS_IOMMU, Iommu
from commcheck.formats.nvidia_smi_list import NVIDIA_SMI_LIST, GpuList
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The groups, and the GPUs' names."""

    iommu: Iommu = reads(SYSFS_IOMMU)
    gpus: GpuList | Unread = tries(NVIDIA_SMI_LIST)


PASS_THROUGH = Remedy(
    command="grubby --update-kernel=ALL --args=iommu=pt",
    effect=Words(
        "Devices of the host pass through after the next boot (Debian: GRUB_CMDLINE_LINUX and "
        "update-grub).",
        "下次启动后主机设备直通（Debian：修改 GRUB_CMDLINE_LINUX 并执行 update-grub）。",
    ),
    precondition=Words(
        "Host drained, console access; not on hosts for guests without their owner. It weakens "
        "protection from faulty devices.",
        "主机已排空、有控制台；承载虚拟机的主机须经负责人同意。会减弱对异常设备的防护。",
    ),
    who="security owner",
)

TRANSLATES = Cause(
    slug="iommu-translates",
    title=Words("IOMMU translates NIC or GPU", "IOMMU 对网卡或 GPU 做地址转换"),
    meaning=Words(
        "Transfers between NIC and GPU take the long way: the kernel's default of the IOMMU.",
        "网卡与 GPU 间传输绕行：内核 IOMMU 默认模式所致。",
    ),
    remedies=(PASS_THROUGH,),
)

TRANSLATING: Final = frozenset({"DMA", "DMA-FQ"})


def judge(seen: Seen, machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """Only the rails and the accelerators count."""
    if machine.in_vm:
        return not_applicable("a guest has its host's IOMMU: ask the host's owner")
    if not isinstance(seen.gpus, Unread) and seen.gpus.is_grace:
        return not_applicable("a Grace board needs translation: GPU and CPU share addresses")
    if not seen.iommu.translation:
        return passed("the IOMMU is off: there are no groups")
    devices = {rail.label: rail.pci for rail in machine.rails if rail.pci}
    devices |= {each.label: each.pci for each in machine.accelerators if each.pci}
    kinds = {label: seen.iommu.of(pci) for label, pci in devices.items()}
    if not any(kinds.values()):
        return undecidable("sysfs shows no IOMMU group of a NIC or GPU, while there are groups")
    translated = {label: kind for label, kind in kinds.items() if kind in TRANSLATING}
    measured = {"translated": translated, "devices": len(kinds)}
    if not translated:
        return passed(f"the IOMMU translates none of {len(kinds)} NICs and GPUs", measured=measured)
    shown = ", ".join(f"{label} {kind}" for label, kind in list(translated.items())[:6])
    reason = f"the IOMMU translates {len(translated)} of {len(kinds)} devices ({shown}), want none"
    return warned(TRANSLATES, reason, measured=measured)


CHECK = Check(
    id="physical.iommu-mode",
    title=Words("IOMMU passes NICs and GPUs through", "IOMMU 对网卡与 GPU 直通"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    causes=(TRANSLATES,),
    platforms=GPUS,
)

"""No PCIe switch sends traffic between GPU and NIC up to the root complex.

Why: With ACS redirection on in a switch's port, what a NIC sends to the GPU beside it goes up to
the CPU and back: GPUDirect at half its speed, or hanging, with every link and counter in order.
Reads: ``lspci -vvv -d ::0604`` (root): the bridges above NICs and GPUs; ``nvidia-smi -L``. One
verdict for each host.
By hand: ``lspci -vvv | grep ACSCtl``; ``ReqRedir+`` or ``CmpltRedir+`` on a bridge redirects.
Mend: switch ACS off in the BIOS (with the IOMMU, or in pass-through). ``setpci -s BRIDGE
ECAP_ACS+0x6.w=0000`` does it until the next boot, for the bridges that are named, never in a loop
over all devices.
Healthy though odd: ``SrcValid+`` alone redirects nothing. Redirection at a root port lies above the
switch where GPU and NIC meet: a warning. ACS is what keeps devices of different tenants apart: on
hosts that hand devices to guests it stays on, and is not judged; there ATS on the NIC is the
cure. A guest does not see the real bridges. Grace boards (GH200, GB200, GB300) want redirection:
the CPU has no ATS, and with ConnectX-8 the ports to NIC and GPU each redirect one half of their
traffic. Not judged, and nothing to switch off: ``rdma_topo check`` of rdma-core knows each port.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from commcheck.check import (
    Check,
    Nothing,
    Unread,
    failed,
    not_applicable,
    passed,
    reads,
    tries,
    undecidable,
    warned,
)
from commcheck.formats.kernel_modules import KERNEL_MODULES
from commcheck.formats.lspci import LSPCI_BRIDGES, PciDevice
from commcheck.formats.nvidia_smi_list import NVIDIA_SMI_LIST, GpuList
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Seen:
    """Every bridge, whether devices are handed to guests, and the GPUs' names."""

    bridges: tuple[PciDevice, ...] = reads(LSPCI_BRIDGES)
    modules: frozenset[str] | Unread = tries(KERNEL_MODULES)
    gpus: GpuList | Unread = tries(NVIDIA_SMI_LIST)


BIOS = Remedy(
    command="",
    effect=Words(
        "In the BIOS: ACS off. Survives reboots.",
        "在 BIOS 中关闭 ACS。重启后保留。",
    ),
    precondition=Words(
        "Single-tenant bare metal: it ends the isolation of devices. Security owner's consent, "
        "host drained.",
        "单租户裸机：会取消设备隔离。需安全负责人同意，主机已排空。",
    ),
    who="security owner",
)
SETPCI = Remedy(
    command="setpci -s {bridge} ECAP_ACS+0x6.w=0000",
    effect=Words(
        "Switches redirection off at this bridge at once, lost at boot. The same for each bridge "
        "that the reason names.",
        "立即关闭该桥的重定向，重启后失效。对原因中列出的每个桥分别执行。",
    ),
    precondition=Words(
        "Single-tenant bare metal, no guests, only the bridges that are named, no job on the host.",
        "单租户裸机、无虚拟机、仅限列出的桥、主机上没有作业。",
    ),
    who="security owner",
)

REDIRECTS = Cause(
    slug="pcie-acs-redirects",
    title=Words("ACS redirects GPU-NIC traffic", "ACS 重定向 GPU 与网卡间流量"),
    meaning=Words(
        "Traffic between a GPU and the NIC beside it goes through the CPU: GPUDirect loses its "
        "speed. A BIOS default.",
        "GPU 与相邻网卡间的流量绕行 CPU：GPUDirect 失去性能。多为 BIOS 默认值。",
    ),
    remedies=(BIOS, SETPCI),
)
AT_ROOT = Cause(
    slug="pcie-acs-at-root",
    title=Words("ACS redirects at a root port", "根端口启用 ACS 重定向"),
    meaning=Words(
        "Traffic that meets below a switch is not concerned; between two root ports it is checked "
        "on its way through the CPU.",
        "在交换芯片下汇合的流量不受影响；跨根端口的流量会在经过 CPU 时被检查。",
    ),
    remedies=(BIOS,),
)

REDIRECT: Final = frozenset({"ReqRedir", "CmpltRedir"})
GUESTS: Final = frozenset({"vfio_pci", "vfio_pci_core"})
"""Modules that are loaded where devices are handed to guests."""


def judge(seen: Seen, machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """Only the bridges above a rail or a GPU count."""
    if machine.in_vm:
        return not_applicable("a guest does not see the real bridges: ask the host's owner")
    if not isinstance(seen.modules, Unread) and seen.modules & GUESTS:
        return not_applicable(
            "devices may be handed to guests here (vfio-pci): ACS keeps them apart"
        )
    if not isinstance(seen.gpus, Unread) and seen.gpus.is_grace:
        # Source: https://github.com/linux-rdma/rdma-core/pull/1644, compute_acs of rdma_topo.
        return not_applicable(
            "a Grace board needs redirection, set port by port: rdma_topo check of rdma-core tells"
        )
    slots = [rail.pci for rail in machine.rails if rail.pci]
    slots += [each.pci for each in machine.accelerators if each.pci]
    above = [bridge for bridge in seen.bridges if any(bridge.is_above(slot) for slot in slots)]
    if not above:
        return undecidable("lspci shows no bridge above a NIC or GPU of this host")
    if not any(bridge.told for bridge in above):
        return undecidable("lspci shows no registers of the bridges", turn_on="it needs root")
    on = [bridge for bridge in above if bridge.acs and bridge.acs & REDIRECT]
    in_switch = [bridge for bridge in on if bridge.kind != "Root Port"]
    measured = {"bridges": len(above), "redirecting": [bridge.slot for bridge in on]}
    if in_switch:
        return failed(
            REDIRECTS,
            f"ACS redirects at {_slots(in_switch)}, between GPUs and NICs, want ReqRedir- and "
            "CmpltRedir-",
            measured=measured,
            bridge=in_switch[0].slot,
        )
    if on:
        reason = f"ACS redirects at root port {_slots(on)}, above where GPUs and NICs meet"
        return warned(AT_ROOT, reason, measured=measured)
    return passed(f"no ACS redirection at {many(len(above), 'bridge')} above NICs and GPUs")


def _slots(bridges: Sequence[PciDevice]) -> str:
    named = ", ".join(bridge.slot for bridge in bridges[:6])
    return named if len(bridges) <= 6 else f"{named} and {len(bridges) - 6} more"


CHECK = Check(
    id="physical.pcie-acs",
    title=Words("No ACS between GPU and NIC", "GPU 与网卡间无 ACS 重定向"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    causes=(REDIRECTS, AT_ROOT),
    platforms=GPUS,
)

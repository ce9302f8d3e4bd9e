"""The NIC may read from memory in large requests.

Why: MaxReadReq caps how much the card asks for at once. At 512 bytes, the PCI default, the card
needs many more requests in flight to send at 200 or 400 Gb/s, and often does not get there.
Reads: ``lspci -vvv -s PCI`` (root). One verdict for each rail.
By hand: ``lspci -vvv -s PCI | grep MaxReadReq``.
Mend: the BIOS has the setting under PCIe; else ``setpci -s PCI CAP_EXP+8.w=5000:7000``: value and
mask, so that only these three bits change. It is lost at boot. A bare ``=5xxx`` overwrites error
reporting and relaxed ordering.
Healthy though odd: some platforms reach line rate with less; that is why it is a warning. Guests
see a register that the host owns. Without root nothing of it is shown.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, limit, passed, reads, undecidable, warned
from commcheck.formats.lspci import LSPCI_RAIL, PciDevice
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The card's registers."""

    devices: tuple[PciDevice, ...] = reads(LSPCI_RAIL)


@dataclass(frozen=True, slots=True)
class Limits:
    """What vendors ask for."""

    read_request_bytes: int = limit(
        4096, unit="bytes", source="NVIDIA and Broadcom performance tuning guides"
    )


BIOS = Remedy(
    command="",
    effect=Words(
        "In the BIOS: PCIe maximum read request 4096. Survives reboots.",
        "在 BIOS 中将 PCIe 最大读请求设为 4096。重启后保留。",
    ),
    precondition=Words(
        "Host drained, console access, the owner's consent.",
        "主机已排空、有控制台、已获负责人同意。",
    ),
    who="vendor",
)
SETPCI = Remedy(
    command="setpci -s {pci} CAP_EXP+8.w=5000:7000",
    effect=Words(
        "Writes three bits of a register at once; lost at boot.",
        "立即改写寄存器中的三个比特；重启后失效。",
    ),
    precondition=Words(
        "No job on the host, single-tenant bare metal, this address only, with the mask.",
        "主机上没有作业、单租户裸机、仅限该地址且必须带掩码。",
    ),
)

SMALL = Cause(
    slug="pcie-read-request-small",
    title=Words("PCIe read requests are small", "PCIe 读请求过小"),
    meaning=Words(
        "The card asks for little at once and may not fill its port: the BIOS left the default.",
        "网卡单次读取量小，可能无法跑满端口：BIOS 保留了默认值。",
    ),
    remedies=(BIOS, SETPCI),
)


def judge(seen: Seen, rail: Rail, _want: Nothing, limits: Limits) -> Verdict:
    """Advisory: many platforms reach their rate with less."""
    mine = next((each for each in seen.devices if each.slot == rail.pci), None)
    if mine is None:
        return undecidable(f"lspci does not list {rail.label} at {rail.pci}")
    if not mine.answers:
        return undecidable(
            f"{rail.label} does not answer on the bus any more: its registers read as ones",
            turn_on="look at dmesg for AER and link down; it comes back with a power cycle",
        )
    size = mine.max_read_request_bytes
    if size is None:
        return undecidable(f"lspci shows no registers of {rail.label}", turn_on="it needs root")
    measured = {
        "max_read_request_bytes": size,
        "max_payload_bytes": mine.max_payload_bytes,
        "relaxed_ordering": mine.relaxed_ordering,
    }
    says = f"{rail.label} has MaxReadReq {size} bytes"
    if size >= limits.read_request_bytes:
        return passed(says, measured=measured)
    reason = f"{says}, want {limits.read_request_bytes}"
    return warned(SMALL, reason, measured=measured, pci=rail.pci or "?")


def not_applicable(rail: Rail) -> str | None:
    """The register that counts is the physical function's."""
    if rail.is_vf:
        return f"{rail.label} is a virtual function: read this on the host that owns the port"
    return None


CHECK = Check(
    id="physical.pcie-mrrs",
    title=Words("PCIe read requests are large", "PCIe 读请求足够大"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.rdma-device-count",),
    causes=(SMALL,),
    platforms=frozenset({"gpu-roce", "gpu-ib"}),
    not_applicable=not_applicable,
)

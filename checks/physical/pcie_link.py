"""The NIC's PCIe link has all its lanes and carries the port's rate.

Why: A card that is not quite seated trains with half its lanes or at an older generation. No
driver complains, and a 400G port then moves 200G: the slowest rail sets the pace of every ring.
Reads: width and speed of the card, of the slot above it and the port's rate, in
``/sys/class/infiniband``. One verdict for each rail.
By hand: ``lspci -vvv -s PCI | grep -E 'LnkCap:|LnkSta:'`` (root), or the files
``/sys/bus/pci/devices/PCI/*_link_*``.
Mend: reseat the card, look at the riser, then the BIOS (bifurcation, forced generation). Compare
with a healthy peer before anything is ordered: perhaps every slot of this model is wired so.
Healthy though odd: a card that could do more than the slot, or a slower link that still carries
the port (ConnectX-7 at 200G in a Gen4 slot), is no fault. A slot wired x8 is none where that is
enough for the port. About 110 Gb/s are usable of 16 lanes at 8 GT/s, 220 at 16, 440 at 32, 880 at
64. A virtual function has no link of its own.
"""

from __future__ import annotations

from commcheck.check import Check, expects, failed, limit, passed, reads, undecidable
from commcheck.expect import LINE_RATE_GBITS
from commcheck.formats.pcie_link import PCIE_LINK, PcieLink
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """Card, slot and port in sysfs."""

    link: PcieLink = reads(PCIE_LINK)


@dataclass(frozen=True, slots=True)
class Want:
    """The declared line rate; undeclared: the port's own rate counts."""

    line_rate_gbits: Wanted[int | None] = expects(LINE_RATE_GBITS)


@dataclass(frozen=True, slots=True)
class Limits:
    """What is left for data of a lane's raw rate."""

    usable_share: float = limit(
        0.859,
        unit="of the raw rate",
        source="practice: about 110 Gb/s of 16 lanes at 8 GT/s, and in proportion",
    )


COMPARE = Remedy(
    command="lspci -vvv -s {pci}",
    effect=Words(
        "Shows LnkCap and LnkSta (root). Do the same on a healthy host of this model: is the slot "
        "wired so?",
        "查看 LnkCap 与 LnkSta（需 root）。在同型号健康主机上对比：插槽是否本来如此布线？",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
RESEAT = Remedy(
    command="",
    effect=Words(
        "Reseat card and riser, clean the contacts, try another slot; again: replace the riser, "
        "then the card.",
        "重新插拔网卡与转接卡、清洁触点、换插槽测试；复发则更换转接卡，再更换网卡。",
    ),
    precondition=Words(
        "Host drained and powered off.",
        "主机已排空并断电。",
    ),
    who="vendor",
)
BIOS = Remedy(
    command="",
    effect=Words(
        "In the BIOS: bifurcation of the slot, its forced generation or width; or move the card to "
        "a slot that carries its rate.",
        "在 BIOS 中检查插槽拆分与强制的代次、宽度；或将网卡移到满足带宽的插槽。",
    ),
    precondition=Words(
        "Host drained, console access, owner's consent; settings noted before.",
        "主机已排空、有控制台、已获负责人同意；事先记录原设置。",
    ),
    who="vendor",
)

LANES = Cause(
    slug="pcie-lanes-lost",
    title=Words("PCIe lanes are lost", "PCIe 通道丢失"),
    meaning=Words(
        "The link trained with fewer lanes than card and slot have: not seated, a riser, a dirty "
        "contact, or bifurcation in the BIOS.",
        "链路训练的通道数少于网卡与插槽能力：未插牢、转接卡、触点脏污或 BIOS 拆分。",
    ),
    remedies=(COMPARE, RESEAT, BIOS),
)
SPEED = Cause(
    slug="pcie-speed-low",
    title=Words("PCIe link is too slow", "PCIe 链路速率过低"),
    meaning=Words(
        "The link trained at an older generation than card and slot can do, and does not carry "
        "the port's rate: signal quality, or a generation forced in the BIOS.",
        "链路代次低于网卡与插槽能力，无法承载端口速率：信号质量问题或 BIOS 强制代次。",
    ),
    remedies=(COMPARE, RESEAT, BIOS),
)
SLOT = Cause(
    slug="pcie-slot-small",
    title=Words("PCIe slot is too small for the port", "PCIe 插槽带宽不足"),
    meaning=Words(
        "The link is as good as the slot, and the slot does not carry the port's rate: the wrong "
        "slot, or bifurcation in the BIOS.",
        "链路已达插槽上限，但插槽带宽低于端口速率：插错插槽或 BIOS 拆分。",
    ),
    remedies=(COMPARE, BIOS),
)


def judge(seen: Seen, rail: Rail, want: Want, limits: Limits) -> Verdict:
    """Lanes against card and slot, then bandwidth against the port."""
    link = seen.link
    if link.width is None or link.speed_gts is None:
        return undecidable(f"sysfs does not tell the PCIe link of {rail.label}")
    says = f"{rail.label} has PCIe {link.speed_gts:g} GT/s x{link.width}"
    usable = _usable_gbits(link.speed_gts, link.width, limits)
    measured = {
        "pcie_speed_gts": link.speed_gts,
        "pcie_width": link.width,
        "usable_gbits": round(usable),
    }
    lanes = _least(link.max_width, link.slot_width)
    if lanes is not None and link.width < lanes:
        reason = f"{says}, want x{lanes}: card and slot have that many"
        return failed(LANES, reason, measured=measured, pci=rail.pci or "?")
    # The rate of a port that is down is what it would be at its lowest.
    is_up = rail.state == "ACTIVE"
    port_gbits = want.line_rate_gbits.value or (link.rate_gbits if is_up else None)
    if port_gbits is None:
        return passed(f"{says}; the port's rate is not known", measured=measured)
    if usable >= port_gbits:
        note = _note(link)
        return passed(f"{says}, enough for {port_gbits:g} Gb/s{note}", measured=measured)
    speed = _least(link.max_speed_gts, link.slot_speed_gts)
    slower = speed is not None and link.speed_gts < speed
    return failed(
        SPEED if slower else SLOT,
        f"{says}, about {usable:.0f} Gb/s usable, want {port_gbits:g}"
        + (f": card and slot can do {speed:g} GT/s" if slower else ""),
        measured=measured,
        pci=rail.pci or "?",
    )


def _usable_gbits(speed_gts: float, width: int, limits: Limits) -> float:
    # Up to 5 GT/s ten bits carry eight, from 8 GT/s on 130 carry 128.
    coding = 0.8 * 130 / 128 if speed_gts <= 5 else 1.0
    return speed_gts * width * limits.usable_share * coding


def _least(card: float | None, slot: float | None) -> float | None:
    """What both can do; a slot that is not told is taken to be no less than the card."""
    return card if card is None or slot is None else min(card, slot)


def _note(link: PcieLink) -> str:
    """Said of a link that is less than the card could do, and enough."""
    more = []
    if link.max_width is not None and link.width is not None and link.max_width > link.width:
        more.append(f"x{link.max_width}")
    if link.max_speed_gts and link.speed_gts and link.max_speed_gts > link.speed_gts:
        more.append(f"{link.max_speed_gts:g} GT/s")
    return f"; the card could do {' at '.join(more)}" if more else ""


def not_applicable(rail: Rail) -> str | None:
    """A virtual function has no link of its own."""
    if rail.is_vf:
        return f"{rail.label} is a virtual function: read this on the host that owns the port"
    return None


CHECK = Check(
    id="physical.pcie-link",
    title=Words("PCIe link carries the port", "PCIe 链路满足端口带宽"),
    subject=Rail,
    seen=Seen,
    want=Want,
    limits=Limits,
    judge=judge,
    needs=("physical.rdma-device-count",),
    causes=(LANES, SPEED, SLOT),
    platforms=frozenset({"gpu-roce", "gpu-ib"}),
    not_applicable=not_applicable,
)

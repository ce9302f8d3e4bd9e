"""The NIC's PCIe link has no errors.

Why: PCIe repeats damaged packets by itself, so a bad contact shows only as a NIC that cannot take
its packets fast enough and pauses its switch. An uncorrected error resets the device: the rail
is lost in the middle of a job.
Reads: the kernel's AER counters of the card and the NIC's own view (``ethtool -S DEV``), at the
start and the end of the visit, and what an earlier run read on the same boot. One verdict for each
rail.
By hand: ``grep -H TOTAL /sys/class/infiniband/HCA/device/aer_dev_*``; ``dmesg | grep -i aer``.
Mend: reseat card and riser, another slot, another riser, then the card. Firmware of card, switch
and retimer first where the vendor knows the fault.
On the switch: nothing; but the leaf sees this host's pause frames (physical.pause-storm).
Healthy though odd: single corrected errors are what the protocol is for; growing ones are a
warning. A VM does not see the counters of the slot.
"""

from __future__ import annotations

from commcheck.check import (
    Check,
    Nothing,
    Unread,
    Watched,
    may_watch,
    undecidable,
)
from commcheck.counters import Counters, errors
from commcheck.formats.ethtool_stats import ETHTOOL_STATS
from commcheck.formats.rdma_counters import AER
from commcheck.growing import Limits, settle
from commcheck.lazy import dataclass
from commcheck.model import Cause, Kind, Rail, Remedy, Status, Verdict, Words

UNCORRECTED = ("fatal.TOTAL_ERR_FATAL", "nonfatal.TOTAL_ERR_NONFATAL")
CORRECTED = ("correctable.TOTAL_ERR_COR",)
"""Linux, Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats."""

SIGNAL = (
    "rx_pci_signal_integrity",
    "tx_pci_signal_integrity",
    "outbound_pci_stalled_rd_events",
    "outbound_pci_stalled_wr_events",
)
"""NVIDIA mlx5 counters.rst."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the root port and what the card itself counts; one of them is enough."""

    aer: Watched[Counters] | Unread = may_watch(AER)
    card: Watched[Counters] | Unread = may_watch(ETHTOOL_STATS)


LOOK = Remedy(
    command="grep -H . /sys/class/infiniband/{hca}/device/aer_dev_nonfatal",
    effect=Words(
        "Shows which kind of error it is; the kernel's log says when.",
        "查看错误类型；内核日志给出时间。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
RESEAT = Remedy(
    command="",
    effect=Words(
        "Reseat card and riser and clean the contacts; again: replace the riser, then the card.",
        "重新插拔网卡与转接卡并清洁触点；复发则先更换转接卡，再更换网卡。",
    ),
    precondition=Words("Host drained and powered off.", "主机已排空并断电。"),
    who="vendor",
)

PCIE_ERRORS = Cause(
    slug="pcie-errors",
    title=Words("PCIe errors of a NIC", "网卡 PCIe 错误"),
    meaning=Words(
        "Errors that the link could not correct: slot, riser, retimer or card.",
        "链路无法纠正的错误：插槽、转接卡、重定时器或网卡。",
    ),
    remedies=(LOOK, RESEAT),
)
PCIE_SIGNAL = Cause(
    slug="pcie-signal",
    title=Words("PCIe link of a NIC is strained", "网卡 PCIe 链路信号差或阻塞"),
    meaning=Words(
        "Corrected errors or stalls grow: nothing is lost, and bandwidth is.",
        "已纠正错误或阻塞持续增长：数据未丢，带宽受损。",
    ),
    remedies=(LOOK, RESEAT),
)


def judge(seen: Seen, rail: Rail, _want: Nothing, limits: Limits) -> Verdict:
    """Uncorrected errors fail, corrected ones and stalls warn."""
    verdicts = []
    for counters, names, cause in (
        (seen.aer, UNCORRECTED, PCIE_ERRORS),
        (seen.aer, CORRECTED, PCIE_SIGNAL),
        (seen.card, SIGNAL, PCIE_SIGNAL),
    ):
        if isinstance(counters, Unread):
            continue
        found = errors(counters, names)
        if found.there:
            advisory = cause is PCIE_SIGNAL
            verdicts.append(settle(found, rail, cause, limits, advisory=advisory))
    if not verdicts:
        return undecidable(
            f"{rail.label}: neither the kernel nor the driver counts PCIe errors here",
            turn_on="boot with pci=aer and kernel 4.20 or newer; in a VM ask its host",
        )
    return min(verdicts, key=_rank)


def _rank(verdict: Verdict) -> int:
    """Wrong before undecidable before right."""
    order = (Status.FAIL, Status.WARN)
    if verdict.status in order:
        return order.index(verdict.status)
    return 2 if verdict.kind is Kind.UNDECIDABLE else 3


def not_applicable(rail: Rail) -> str | None:
    """A virtual function has no link of its own."""
    if rail.is_vf:
        return f"{rail.label} is a virtual function: read this on the host that owns the port"
    return None


CHECK = Check(
    id="physical.pcie-errors",
    title=Words("PCIe link of the NIC has no errors", "网卡 PCIe 链路无错误"),
    subject=Rail,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.rdma-device-count",),
    causes=(PCIE_ERRORS, PCIE_SIGNAL),
    platforms=frozenset({"gpu-roce", "gpu-ib"}),
    not_applicable=not_applicable,
)

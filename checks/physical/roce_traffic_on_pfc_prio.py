"""RDMA traffic really rides on the lossless priority.

Why: PFC protects a priority, and a packet chooses its priority by its mark. Where the mark, the map
or the trust is wrong, all settings look right one by one and RoCE still travels unprotected.
Reads: ``ethtool -S DEV`` at the start and the end of the visit, and what an earlier run read on
the same boot. One verdict for each Ethernet rail that carried RDMA traffic meanwhile.
By hand: twice, ten seconds apart, under load: ``ethtool -S DEV | grep -E 'prio._bytes|rdma'``.
Mend: follow the mark: traffic class of the job (``NCCL_IB_TC``, or the HCA's ``traffic_class``),
DSCP = class / 4, DSCP map and trust of the NIC.
On the switch: the priority on which the port receives the bytes is the one that it must protect.
Healthy though odd: an idle host has no RDMA traffic and is not judged. Storage over RDMA may ride
on another priority on purpose; then only the lesser part would be the job's.
"""

from __future__ import annotations

from commcheck.applies import qos_owner
from commcheck.check import (
    Check,
    Span,
    Watched,
    expects,
    failed,
    limit,
    not_applicable,
    passed,
    watches,
)
from commcheck.counters import WINDOW_SOURCE, Counters, growth, length
from commcheck.expect import FLOW_CONTROL, ROCE_PRIORITY
from commcheck.formats.ethtool_stats import ETHTOOL_STATS
from commcheck.growing import absent
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words

PRIO_BYTES = tuple(
    tuple(
        form.format(way=way, prio=prio)
        for way in ("rx", "tx")
        for form in ("{way}_prio{prio}_bytes", "{way}_bytes_pri{prio}")
    )
    for prio in range(8)
)
"""Names by priority: mlx5 (NVIDIA mlx5 counters.rst), bnxt_en (bnxt_ethtool.c)."""

RDMA_BYTES = ("rx_vport_rdma_unicast_bytes", "tx_vport_rdma_unicast_bytes")


@dataclass(frozen=True, slots=True)
class Seen:
    """The driver's counters."""

    counters: Watched[Counters] = watches(ETHTOOL_STATS)


@dataclass(frozen=True, slots=True)
class Want:
    """What the fabric protects."""

    priority: Wanted[int] = expects(ROCE_PRIORITY)
    flow_control: Wanted[str] = expects(FLOW_CONTROL)


@dataclass(frozen=True, slots=True)
class Limits:
    """From when on traffic says something."""

    window_s: float = limit(0.0, unit="s of waiting", source=WINDOW_SOURCE)
    least_gbytes: float = limit(
        1.0, unit="GB of traffic", source="own default: more than heartbeats and monitoring"
    )
    share: float = limit(
        0.5, unit="of the RDMA bytes", source="own default: storage may have its own priority"
    )


MARK = Remedy(
    command="cat /sys/class/infiniband/{hca}/tc/1/traffic_class",
    effect=Words(
        "Shows the class that the HCA forces, where the vendor's driver has it; NCCL sets its own "
        "with NCCL_IB_TC. DSCP is the class divided by 4.",
        "显示 HCA 强制的流量类别（厂商驱动）；NCCL 由 NCCL_IB_TC 设置。DSCP 等于其值除以 4。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
SET_TC = Remedy(
    command="export NCCL_IB_TC={tclass}",
    effect=Words(
        "In the job's environment on all ranks: RoCE packets carry the DSCP that the fabric maps "
        "to its lossless priority.",
        "在作业全部进程的环境中设置：RoCE 报文携带映射到无损优先级的 DSCP。",
    ),
    precondition=Words(
        "The DSCP map of NIC and switches agree on it; a new start of the job.",
        "网卡与交换机的 DSCP 映射一致；需重启作业。",
    ),
)

WRONG_PRIORITY = Cause(
    slug="roce-on-wrong-priority",
    title=Words("RoCE rides on another priority", "RoCE 走在错误的优先级"),
    meaning=Words(
        "The bytes of RDMA are counted on a priority that nobody protects: NCCL_IB_TC is not set, "
        "or trust and DSCP map send the mark elsewhere.",
        "RDMA 流量计入未受保护的优先级：NCCL_IB_TC 未设置，或信任模式、DSCP 映射有误。",
    ),
    remedies=(MARK, SET_TC),
)


def judge(seen: Seen, rail: Rail, want: Want, limits: Limits) -> Verdict:
    """Bytes by priority against the bytes of RDMA, over the longest window with traffic."""
    priority = want.priority.value
    if want.flow_control.value != "pfc":
        declared = f"flow control is {want.flow_control.value}: {want.flow_control.origin}"
        return not_applicable(declared)
    if all(seen.counters.visit.last.get(name) is None for name in PRIO_BYTES[priority]):
        return absent(rail, "bytes by priority")
    spans = [seen.counters.visit, *filter(None, (seen.counters.since,))]
    # Settings may have changed since an earlier run: what flows now is better, if anything does.
    span = next((each for each in spans if _rdma(each) >= limits.least_gbytes * 1e9), None)
    if span is None:
        longest = length(spans[-1].seconds)
        return not_applicable(f"{rail.label} carried next to no RDMA traffic in {longest}")
    by_prio = [growth(span, names).total for names in PRIO_BYTES]
    rdma, busiest = _rdma(span), by_prio.index(max(by_prio))
    share = by_prio[priority] / rdma
    measured = {
        "rdma_gbytes": round(rdma / 1e9, 1),
        "on_priority_gbytes": round(by_prio[priority] / 1e9, 1),
        "busiest_priority": busiest,
        "window_s": round(span.seconds, 1),
    }
    says = (
        f"{rail.label}: {by_prio[priority] / 1e9:.1f} GB on priority {priority} while RDMA moved "
        f"{rdma / 1e9:.1f} GB in {length(span.seconds)}"
    )
    if share >= limits.share:
        return passed(says, measured=measured)
    return failed(
        WRONG_PRIORITY,
        f"{says}; most went on priority {busiest}",
        measured=measured,
        hca=rail.hca,
        tclass=_CLASS.get(priority, "TC"),
    )


_CLASS = {3: 106, 4: 132}
"""Traffic classes of the usual DSCP of a priority: 26 with ECT on 3 (NVIDIA), 33 on 4 (CANN)."""


def _rdma(span: Span[Counters]) -> int:
    """Bytes of RDMA; where the driver does not count them apart, all but best effort."""
    counted = growth(span, RDMA_BYTES)
    if any(span.last.get(name) is not None for name in RDMA_BYTES):
        return counted.total
    return max(growth(span, names).total for names in PRIO_BYTES)


CHECK = Check(
    id="physical.roce-traffic-on-pfc-prio",
    title=Words("RDMA rides on the lossless priority", "RDMA 流量走无损优先级"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    want=Want,
    limits=Limits,
    judge=judge,
    needs=(
        "physical.nic-link-up",
        "physical.pfc-enabled",
        "physical.roce-trust-dscp",
        "physical.roce-dscp-map",
    ),
    causes=(WRONG_PRIORITY,),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=qos_owner,
)

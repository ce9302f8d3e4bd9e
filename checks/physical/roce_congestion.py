"""Congestion control works, and has little to do.

Why: ECN slows the senders before PFC has to stop them. Where a lot of congestion is signalled, the
fabric is overloaded or two flows share one link; where a host is paused and nobody signals, ECN is
off and only pauses are left, which hit those who are not to blame.
Reads: ``hw_counters`` of the RDMA port and ``ethtool -S DEV``, at the start and the end of the
visit, and what an earlier run read on the same boot. One verdict for each Ethernet rail.
By hand: twice, ten seconds apart, under load: ``grep -H .
/sys/class/infiniband/HCA/ports/1/hw_counters/*cnp*``.
Mend: no notifications: ECN on NIC and switch. Many: spread the job over its rails and leaves
(ECMP, NCCL_IB_QPS_PER_CONNECTION), look for a slow receiver.
On the switch: ECN marking on the queue of RoCE and its thresholds; load of the uplinks.
Healthy though odd: an idle or well spread fabric signals nothing at all. A fabric with its own
congestion control may never use these counters.
"""

from __future__ import annotations

from commcheck.applies import ethernet_only
from commcheck.check import (
    Check,
    Nothing,
    Span,
    Unread,
    Watched,
    limit,
    may_watch,
    passed,
    warned,
    watches,
)
from commcheck.counters import WINDOW_SOURCE, Counters, errors, growth, length
from commcheck.formats.ethtool_stats import ETHTOOL_STATS, PAUSED_US
from commcheck.formats.rdma_counters import HW_COUNTERS
from commcheck.growing import absent
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Words

NOTIFIED = ("np_cnp_sent", "rp_cnp_handled", "tx_cnp_pkts", "rx_cnp_pkts")
"""mlx5 (NVIDIA, Understanding mlx5 Linux counters), bnxt_re (hw_counters.c)."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The RDMA port's counters, and the netdev's where they can be read."""

    rdma: Watched[Counters] = watches(HW_COUNTERS)
    netdev: Watched[Counters] | Unread = may_watch(ETHTOOL_STATS)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much congestion is much."""

    window_s: float = limit(0.0, unit="s of waiting", source=WINDOW_SOURCE)
    cnp_per_s: float = limit(
        10_000.0, unit="congestion notifications a second", source="own default"
    )
    pause_share: float = limit(
        0.01, unit="of the window paused", source="own default: below, ECN has nothing to do"
    )


LOOK = Remedy(
    command="grep -r . /sys/class/net/{netdev}/ecn",
    effect=Words(
        "Shows ECN by priority, where the vendor's driver has it: 1 is on.",
        "查看各优先级 ECN 设置（厂商驱动）：1 为启用。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
SWITCH = Remedy(
    command="",
    effect=Words(
        "Look at ECN marking and thresholds of the RoCE queue, and at the load of the uplinks.",
        "检查 RoCE 队列的 ECN 标记与阈值，以及上行链路负载。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
    who="network team",
)

CONGESTED = Cause(
    slug="roce-congested",
    title=Words("RoCE traffic is congested", "RoCE 流量拥塞"),
    meaning=Words(
        "Congestion is signalled all the time and senders slow down: overload, flows that share a "
        "link, or a slow receiver.",
        "持续收到拥塞通知，发送端降速：过载、多流共享链路或接收端过慢。",
    ),
    remedies=(LOOK, SWITCH),
)
SILENT = Cause(
    slug="ecn-silent",
    title=Words("Paused, and no congestion signalled", "有暂停但无拥塞通知"),
    meaning=Words(
        "The host is stopped by PFC and congestion control never spoke: ECN is off on the NIC or "
        "on the switch.",
        "主机被 PFC 暂停，而拥塞控制没有任何通知：网卡或交换机未启用 ECN。",
    ),
    remedies=(LOOK, SWITCH),
)


def judge(seen: Seen, rail: Rail, _want: Nothing, limits: Limits) -> Verdict:
    """Warnings only: congestion is a symptom."""
    found = errors(seen.rdma, NOTIFIED)
    if not found.there:
        return absent(rail, "congestion notifications")
    netdev = rail.netdev or "?"
    longest = found.longest
    rate = longest.total / longest.seconds if longest.seconds else 0.0
    measured = {**found.measured, "cnp_per_s": round(rate, 1)}
    if rate > limits.cnp_per_s:
        reason = f"{rail.label}: {rate:.0f} notifications a second over {length(longest.seconds)}"
        reason += f", want below {limits.cnp_per_s:.0f}"
        return warned(CONGESTED, reason, measured=measured, netdev=netdev)
    paused = _paused_share(seen.netdev)
    if paused > limits.pause_share and found.never:
        reason = f"{rail.label}: paused {paused:.1%} of the time, and no notification ever"
        return warned(SILENT, reason, measured=measured, netdev=netdev)
    return passed(f"{rail.label}: {longest}{found.told}", measured=measured)


def _paused_share(netdev: Watched[Counters] | Unread) -> float:
    if isinstance(netdev, Unread):
        return 0.0
    span: Span[Counters] = netdev.since or netdev.visit
    longest = max(growth(span, PAUSED_US).added.values(), default=0)
    return longest / 1e6 / span.seconds if span.seconds else 0.0


CHECK = Check(
    id="physical.roce-congestion",
    title=Words("Little congestion, and it is signalled", "拥塞少且有通知"),
    subject=Rail,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=(
        "physical.nic-link-up",
        "physical.pfc-enabled",
        "physical.roce-trust-dscp",
        "physical.roce-dscp-map",
    ),
    causes=(CONGESTED, SILENT),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=ethernet_only,
)

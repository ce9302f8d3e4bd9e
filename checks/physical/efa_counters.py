"""EFA loses little, and reaches its peers.

Why: EFA's transport (SRD) sends lost packets again by itself, so nothing fails above: it only gets
slower. A peer that does not answer any more ends the job.
Reads: ``/sys/class/infiniband/DEV/ports/1/hw_counters`` at the start and the end of the visit, and
what an earlier run read on the same boot. One verdict for each device.
By hand: ``grep . /sys/class/infiniband/*/ports/1/hw_counters/{rx_drops,retrans_*}``, twice.
Mend: packets that only one host loses are its own; that many lose are the network's: placement
group, and security groups that let all traffic among members through.
Healthy though odd: SRD sprays packets over many paths and sends a few of them again: a small share
is normal. When a job ends, what is still under way to it is dropped, and counted.
"""

from __future__ import annotations

from dataclasses import replace

from commcheck.check import Check, Nothing, Watched, limit, undecidable, warned, watches
from commcheck.counters import Counters, errors, growth
from commcheck.formats.rdma_counters import HW_COUNTERS
from commcheck.growing import Limits as GrowthLimits
from commcheck.growing import settle
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Status, Verdict, Words

DROPS = ("rx_drops",)
LOST_PEERS = ("unresponsive_remote_events", "impaired_remote_conn_events")
RETRANSMITTED, SENT = "retrans_pkts", "tx_pkts"
"""Names of Linux drivers/infiniband/hw/efa/efa_verbs.c; those of retransmission are of 2024."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the device counts."""

    counters: Watched[Counters] = watches(HW_COUNTERS)


@dataclass(frozen=True, slots=True)
class Limits(GrowthLimits):
    """Also what a fabric that sprays packets may send twice."""

    retransmitted_share: float = limit(1e-3, unit="of the packets sent", source="own default")


READ = Remedy(
    command="grep -H . /sys/class/infiniband/{hca}/ports/{port}/hw_counters/retrans_pkts",
    effect=Words(
        "Read it on all hosts of the job: on one alone it is the host, on many the network.",
        "在作业全部主机上读取：仅一台异常属主机问题，多台异常属网络问题。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
GROUPS = Remedy(
    command="",
    effect=Words(
        "Check that the security group lets all traffic of its own members in and out, and that "
        "all instances are in one placement group.",
        "检查安全组是否放行组内全部出入流量，且所有实例位于同一置放群组。",
    ),
    precondition=Words("The account's owner agrees.", "已获账号负责人同意。"),
    who="network team",
)

DROPPED = Cause(
    slug="efa-drops",
    title=Words("EFA drops what arrives", "EFA 丢弃收到的报文"),
    meaning=Words(
        "Packets arrived and were thrown away: the receiver was not ready, or its job had ended.",
        "报文到达后被丢弃：接收端未就绪，或作业已结束。",
    ),
    remedies=(READ,),
)
PEERS_LOST = Cause(
    slug="efa-peer-unresponsive",
    title=Words("EFA peers do not answer", "EFA 对端无响应"),
    meaning=Words(
        "Packets to a peer were not acknowledged however often they were sent.",
        "发往对端的报文多次重传仍未确认。",
    ),
    remedies=(GROUPS, READ),
)
MANY = Cause(
    slug="efa-retransmissions",
    title=Words("EFA sends much again", "EFA 重传过多"),
    meaning=Words(
        "More packets are sent twice than spraying over many paths explains: congestion or loss.",
        "重传比例超出多路径喷洒的正常范围：网络拥塞或丢包。",
    ),
    remedies=(READ, GROUPS),
)


def judge(seen: Seen, rail: Rail, _want: Nothing, limits: Limits) -> Verdict:
    """None of it proves a broken host: all of it warns."""
    found = errors(seen.counters, (*DROPS, *LOST_PEERS))
    if not found.only(DROPS).there:
        return undecidable(f"{rail.label} shows no rx_drops", turn_on="update the EFA driver")
    for names, cause in ((LOST_PEERS, PEERS_LOST), (DROPS, DROPPED)):
        if (part := found.only(names)).there:
            verdict = settle(part, rail, cause, limits, advisory=True)
            if verdict.status is Status.WARN:
                return verdict
    verdict = settle(found, rail, DROPPED, limits, advisory=True)
    share = _share(seen.counters)
    if share is None:
        return verdict
    told = f"{share:.2%} of the packets sent again"
    measured = {**found.measured, "retransmitted_share": share}
    if share > limits.retransmitted_share:
        reason = f"{rail.label}: {told}, want at most {limits.retransmitted_share:.2%}"
        return warned(MANY, reason, measured=measured, hca=rail.hca, port=rail.port)
    return replace(verdict, reason=f"{verdict.reason}; {told}", measured=measured)


def _share(counters: Watched[Counters]) -> float | None:
    """Of the packets sent, over the longest window; None: nothing was sent, or nothing counts."""
    added = growth(counters.since or counters.visit, (RETRANSMITTED, SENT)).added
    sent = added.get(SENT, 0)
    if counters.visit.last.get(RETRANSMITTED) is None or not sent:
        return None
    return added.get(RETRANSMITTED, 0) / sent


def not_applicable(rail: Rail) -> str | None:
    """Other devices next to it have other counters."""
    return None if rail.driver in (None, "efa") else f"{rail.label} is driven by {rail.driver}"


CHECK = Check(
    id="physical.efa-counters",
    title=Words("EFA loses little", "EFA 丢包与重传正常"),
    subject=Rail,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.rdma-port-active",),
    causes=(DROPPED, PEERS_LOST, MANY),
    platforms=frozenset({"gpu-efa"}),
    not_applicable=not_applicable,
)

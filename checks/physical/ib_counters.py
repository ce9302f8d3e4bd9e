"""The InfiniBand port has no symbol errors, link losses or damaged packets.

Why: InfiniBand repeats damaged packets on the link itself: no error is seen above, but each one
delays all that wait behind it. A link that recovers takes milliseconds, one that is lost ends
the job.
Reads: ``/sys/class/infiniband/HCA/ports/N/counters`` at the start and the end of the visit, and
what an earlier run read on the same boot. One verdict for each InfiniBand rail.
By hand: ``perfquery -x LID PORT`` (root), twice; the whole fabric, from one node only:
``ibqueryerrors``.
Mend: clean and reseat both ends, swap the cable, then the port.
On the switch: ``ibqueryerrors`` names the far port too: errors only at one end point to the other
end's sender.
Healthy though odd: some counters are as small as 4 bits and stop at their highest value: full ones
cannot show growth, set them to zero (``perfquery -R``). ``port_xmit_wait`` is congestion, no error;
``*_data`` count words of 4 bytes.
"""

from __future__ import annotations

from commcheck.check import Check, Explained, Nothing, Watched, watches
from commcheck.counters import Counters, errors
from commcheck.formats.rdma_counters import IB_COUNTERS, TOPS
from commcheck.growing import Limits, absent, settle
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Status, Verdict, Words

LINK = (
    "symbol_error",
    "link_downed",
    "link_error_recovery",
    "port_rcv_errors",
    "local_link_integrity_errors",
)
DISCARDS = ("port_xmit_discards",)
"""InfiniBand specification, PortCounters."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The port's standard counters."""

    counters: Watched[Counters] = watches(IB_COUNTERS)


QUERY = Remedy(
    command="ibqueryerrors",
    effect=Words(
        "Shows the errors of both ends of every link (root; reads the whole fabric: one node "
        "only).",
        "显示每条链路两端的错误（需 root；会读取整个网络，仅在一个节点运行）。",
    ),
    precondition=Words("The fabric's owner agrees.", "已获网络负责人同意。"),
    who="network team",
)
CLEAN = Remedy(
    command="",
    effect=Words(
        "Clean and reseat both ends, then swap the cable. The link goes down meanwhile.",
        "清洁并重插两端，再更换线缆。期间链路中断。",
    ),
    precondition=Words("Host drained.", "主机已排空。"),
    who="vendor",
)

BAD_LINK = Cause(
    slug="ib-link-errors",
    title=Words("InfiniBand link has errors", "InfiniBand 链路误码"),
    meaning=Words(
        "The link damages packets or recovers: a dirty connector, a failing cable or port.",
        "链路损坏报文或反复恢复：连接器脏污，线缆或端口故障。",
    ),
    remedies=(QUERY, CLEAN),
)
DROPS = Cause(
    slug="ib-xmit-discards",
    title=Words("InfiniBand port drops packets", "InfiniBand 端口丢弃报文"),
    meaning=Words(
        "Packets waited too long to be sent and were thrown away: heavy congestion, or a peer "
        "that does not take them.",
        "报文等待发送超时被丢弃：严重拥塞，或对端停止接收。",
    ),
    remedies=(QUERY,),
)


def judge(seen: Seen, rail: Rail, _want: Nothing, limits: Limits) -> Verdict:
    """Errors of the link fail, packets thrown away in congestion warn."""
    found = errors(seen.counters, (*LINK, *DISCARDS), tops=TOPS)
    link = found.only(LINK)
    if not link.there:
        return absent(rail, "InfiniBand link errors")
    verdict = settle(link, rail, BAD_LINK, limits)
    if verdict.status is Status.FAIL or not found.only(DISCARDS).grown.added:
        return verdict
    return settle(found.only(DISCARDS), rail, DROPS, limits, advisory=True)


def not_applicable(rail: Rail) -> str | None:
    """Ethernet ports have these files too, and nothing counts in them."""
    if rail.link_layer in (None, "InfiniBand"):
        return None
    return f"{rail.label} is {rail.link_layer}, not InfiniBand"


CHECK = Check(
    id="physical.ib-counters",
    title=Words("InfiniBand link has no errors", "InfiniBand 链路无误码"),
    subject=Rail,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.rdma-port-active",),
    causes=(BAD_LINK, DROPS),
    explained_by=(Explained("ber-uncorrected", "same-rail", of=frozenset({BAD_LINK.slug})),),
    platforms=frozenset({"gpu-ib"}),
    not_applicable=not_applicable,
)

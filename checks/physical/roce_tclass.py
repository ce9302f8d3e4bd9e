"""RoCE packets leave with the mark that the fabric protects: the whole chain in one verdict.

Why: Four settings must agree, and each alone looks right: the traffic class of the packets gives
their DSCP (traffic class divided by 4), the port trusts it, maps it to a priority, and that
priority has PFC. One broken link, and RoCE rides in a class that nobody made lossless.
Reads: the traffic class that the driver forces (``/sys/class/infiniband/HCA/tc/N/traffic_class``),
else ``NCCL_IB_TC`` of ``/etc/nccl.conf``; trust, map and PFC from ``mlnx_qos -i DEV`` or ``dcb``.
One verdict for each Ethernet rail.
By hand: ``cat /sys/class/infiniband/HCA/tc/1/traffic_class`` (empty: none is forced), ``grep IB_TC
/etc/nccl.conf``, then ``mlnx_qos -i DEV``: trust, the row of the DSCP, PFC of its priority.
Mend: the link of the chain that the reason names. The traffic class itself: set ``NCCL_IB_TC`` for
the jobs, or ``echo 106 > .../traffic_class`` (root, gone at reboot), which marks all RoCE of the
HCA anew, storage too.
On the switch: the same DSCP in the same lossless class, on the whole path.
Healthy though odd: nothing forced is right: then each job must set ``NCCL_IB_TC``, or its packets
leave with DSCP 0. 104 and 106 are both DSCP 26: the last two bits are ECN's. Traffic class 160 is
DSCP 40: declare ``commcheck_roce_dscp`` and ``commcheck_roce_priority``. Where RoCE runs in tagged
VLANs (``commcheck_trust: pcp``) no traffic class counts. The kernel's own driver has no such file.
Queue pairs made past the kernel (GPU-initiated networking) are not re-marked by it. A break at
trust, map or PFC is that check's fail: here it is shown in the chain.
"""

from __future__ import annotations

from collections.abc import Iterator

from commcheck.applies import qos_owner
from commcheck.check import (
    Check,
    Nothing,
    Unread,
    expects,
    failed,
    passed,
    tries,
    undecidable,
)
from commcheck.command import whole_number
from commcheck.expect import FLOW_CONTROL, ROCE_DSCP, ROCE_PRIORITY, TRUST
from commcheck.formats.nccl_conf import NCCL_CONF, PATH
from commcheck.formats.port_qos import PORT_QOS
from commcheck.formats.qos import Qos
from commcheck.formats.roce_marking import ROCE_MARKING, RoceMarking
from commcheck.lazy import dataclass
from commcheck.model import Cause, Kind, Rail, Remedy, Status, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """Every link of the chain, as far as the host tells it."""

    marking: RoceMarking | Unread = tries(ROCE_MARKING)
    conf: tuple[tuple[str, str], ...] | Unread = tries(NCCL_CONF)
    qos: Qos | Unread = tries(PORT_QOS)


@dataclass(frozen=True, slots=True)
class Want:
    """What the fabric protects."""

    dscp: Wanted[int] = expects(ROCE_DSCP)
    priority: Wanted[int] = expects(ROCE_PRIORITY)
    trust: Wanted[str] = expects(TRUST)
    flow_control: Wanted[str] = expects(FLOW_CONTROL)


SET_NCCL = Remedy(
    command="NCCL_IB_TC={tclass}",
    effect=Words(
        "Into /etc/nccl.conf or the jobs' environment: jobs that start from now on mark with the "
        "fabric's DSCP.",
        "写入 /etc/nccl.conf 或作业环境变量：新启动的作业将使用该网络的 DSCP 标记。",
    ),
    precondition=Words(
        "Where the driver forces a traffic class it wins: clear that first.",
        "若驱动强制了流量类，则以驱动为准：需先清除。",
    ),
)
SET_FORCED = Remedy(
    command="echo {tclass} > /sys/class/infiniband/{hca}/tc/{port}/traffic_class",
    effect=Words(
        "Marks all RoCE of the HCA anew at once, storage too. Gone at reboot unless made "
        "persistent.",
        "立即重新标记该 HCA 的全部 RoCE 流量，包括存储。未做持久化则重启后失效。",
    ),
    precondition=Words(
        "The fabric team agrees; no job on the host.",
        "已与网络团队确认；主机上没有作业。",
    ),
)

OTHER_DSCP = Cause(
    slug="traffic-class-other-dscp",
    title=Words("Traffic class gives another DSCP", "流量类对应的 DSCP 不符"),
    meaning=Words(
        "The host marks RoCE with a DSCP that the fabric does not protect: an old tuning script, "
        "or the pair of another fabric.",
        "主机为 RoCE 设置的 DSCP 不在无损保护范围内：旧调优脚本，或套用了其他网络的配置。",
    ),
    remedies=(SET_NCCL, SET_FORCED),
    everywhere=Words(
        "forced so on every host: the provider's own mark? Change no host; where the network team "
        "says so, declare commcheck_roce_dscp and commcheck_roce_priority",
        "所有主机均强制如此：或许是云厂商自身的标记。请勿改动主机；若网络团队确认，"
        "请声明 commcheck_roce_dscp 与 commcheck_roce_priority",
    ),
)


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """Walk the chain; its first link is judged here, the others by their own checks."""
    named = f"{rail.label} ({rail.netdev})"
    if want.trust.value != "dscp":
        return _onward(named, [f"VLAN tag, no DSCP ({want.trust.origin})"], seen, want, {})
    start = _traffic_class(seen)
    if isinstance(start, Verdict):
        return start
    tclass, origin = start
    dscp = want.dscp.value if tclass is None else tclass >> 2
    measured: dict[str, object] = {"traffic_class": tclass, "dscp": dscp}
    begin = f"none is forced, jobs set NCCL_IB_TC={4 * dscp}" if tclass is None else f"{tclass}"
    links = [f"traffic class {begin}{origin}", f"DSCP {dscp}"]
    if dscp != want.dscp.value:
        return failed(
            OTHER_DSCP,
            f"{named}: {' -> '.join(links)}, breaks here: want DSCP {want.dscp}: "
            f"{want.dscp.origin}",
            measured=measured,
            tclass=4 * want.dscp.value + 2,
            hca=rail.hca,
            port=rail.port,
        )
    return _onward(named, links, seen, want, measured)


def _traffic_class(seen: Seen) -> tuple[int | None, str] | Verdict:
    """The traffic class in force and where it is set; None where jobs decide."""
    marking, conf = seen.marking, seen.conf
    if isinstance(marking, RoceMarking) and marking.traffic_class is not None:
        return marking.traffic_class, " (forced by the driver)"
    if isinstance(marking, Unread):
        return undecidable(f"whether a traffic class is forced is not known: {marking.reason}")
    given = None if isinstance(conf, Unread) else dict(conf).get("NCCL_IB_TC")
    if given is None:
        return None, ""
    number = whole_number(given, 3)
    if number is None or number > 255:
        return undecidable(f"NCCL_IB_TC is {given[:40]!r}, no traffic class: {PATH}")
    return number, f" ({PATH})"


def _onward(
    named: str, links: list[str], seen: Seen, want: Want, measured: dict[str, object]
) -> Verdict:
    """From the mark on, as far as the port tells it."""
    if isinstance(seen.qos, Unread):
        return undecidable(
            f"{named}: {' -> '.join(links)}, and what the port makes of it is not known: "
            f"{seen.qos.reason}"
        )
    for shown, broken_by, unknown in _port_links(seen.qos, want, measured):
        links.append(shown)
        chain = f"{named}: {' -> '.join(links)}"
        if broken_by:
            # One fault, one fail: that check says it, with its remedies.
            return Verdict(
                status=Status.SKIP,
                kind=Kind.BLOCKED,
                reason=f"blocked: {chain}, breaks here: see {broken_by}",
                measured=measured,
            )
        if unknown:
            return undecidable(chain, turn_on=unknown)
    return passed(f"{named}: {' -> '.join(links)}", measured=measured)


def _port_links(
    qos: Qos, want: Want, measured: dict[str, object]
) -> Iterator[tuple[str, str, str]]:
    """(link as shown, the check that fails of it, what would tell it) from trust to PFC."""
    dscp, priority = want.dscp.value, want.priority.value
    newer = "a newer mlnx-tools, or iproute2 5.11 or newer, prints it"
    measured["trust"] = qos.trust
    if qos.trust is None:
        yield "trust not told", "", newer
    wrong = qos.trust != want.trust.value
    yield f"trust {qos.trust}", "physical.roce-trust-dscp" if wrong else "", ""
    if want.trust.value == "dscp":
        if qos.dscp_prio is None:
            yield "DSCP map not told", "", newer
        mapped = sorted({prio for code, prio in qos.dscp_prio or () if code == dscp})
        found = mapped or [qos.default_prio or 0]
        measured["priorities"] = found
        shown = " and ".join(map(str, found))
        wrong = found != [priority]
        yield f"priority {shown}", "physical.roce-dscp-map" if wrong else "", ""
    else:
        yield f"priority {priority} by the VLAN tag", "", ""
    measured["pfc_priorities"] = sorted(qos.pfc)
    if want.flow_control.value != "pfc":
        yield f"flow control {want.flow_control}", "", ""
        return
    is_on = priority in qos.pfc
    shown = f"PFC {'on' if is_on else 'off'} for {priority}"
    yield shown, "" if is_on else "physical.pfc-enabled", ""


CHECK = Check(
    id="physical.roce-tclass",
    title=Words("RoCE mark leads to the lossless class", "RoCE 标记最终进入无损队列"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    want=Want,
    judge=judge,
    needs=("physical.nic-link-up", "physical.bluefield-mode"),
    causes=(OTHER_DSCP,),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=qos_owner,
)

"""The port maps the DSCP of RoCE packets to the RoCE priority.

Why: A port that trusts DSCP looks the priority up in its map. Mapped elsewhere, RoCE rides in a
class that nobody made lossless, and is dropped under incast, although PFC and trust look right.
Reads: ``mlnx_qos -i DEV``, or ``dcb -j app show dev DEV`` where that is not installed, or ``niccli
get_qos`` (root) on Broadcom without either. One verdict for each Ethernet rail.
By hand: ``mlnx_qos -i DEV``, the rows below "dscp2prio mapping:"; ``dcb -N app show dev DEV``.
Mend: set the one entry, then read the map again. Running RoCE traffic changes its class at once.
On the switch: the same DSCP in the same lossless class on every hop.
Healthy though odd: fabrics with another pair declare it: ``commcheck_roce_dscp`` and
``commcheck_roce_priority`` (traffic class 160 is DSCP 40, priority 5 by the factory's map of DSCP
>> 3). A DSCP that dcb does not list goes to the port's default priority.
"""

from __future__ import annotations

from commcheck.applies import qos_owner
from commcheck.check import (
    Check,
    Nothing,
    expects,
    failed,
    not_applicable,
    passed,
    reads,
    undecidable,
    warned,
)
from commcheck.expect import ROCE_DSCP, ROCE_PRIORITY, TRUST
from commcheck.formats.port_qos import PORT_QOS
from commcheck.formats.qos import Qos
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The port's settings, from whichever tool is there."""

    qos: Qos = reads(PORT_QOS)


@dataclass(frozen=True, slots=True)
class Want:
    """Which packets belong where."""

    dscp: Wanted[int] = expects(ROCE_DSCP)
    priority: Wanted[int] = expects(ROCE_PRIORITY)
    trust: Wanted[str] = expects(TRUST)


QUIET = Words(
    "No job on the host; the switch has the same DSCP in the same class. Read the map again "
    "afterwards.",
    "主机上没有作业；交换机将同一 DSCP 映射到同一队列。设置后重新读取映射表。",
)
SET_MLNX = Remedy(
    command="mlnx_qos -i {netdev} --dscp2prio set,{dscp},{priority}",
    driver="mlx5_core",
    effect=Words(
        "RoCE traffic changes its class at once; lost at reboot unless made persistent.",
        "RoCE 流量立即改变队列；未持久化则重启后失效。",
    ),
    precondition=QUIET,
)
SET_DCB = Remedy(
    command="dcb app replace dev {netdev} dscp-prio {dscp}:{priority}",
    effect=Words(
        "The same where mlnx_qos is not installed: takes the place of other entries of this DSCP.",
        "未安装 mlnx_qos 时的等效命令：替换该 DSCP 的其他条目。",
    ),
    precondition=QUIET,
)

ELSEWHERE = Cause(
    slug="dscp-map-wrong",
    title=Words("RoCE DSCP in another priority", "RoCE DSCP 映射到其他优先级"),
    meaning=Words(
        "RoCE packets land in a priority that is not meant for them and not lossless: a custom "
        "map, or the numbers of another fabric.",
        "RoCE 报文落入非预期且无损保护之外的优先级：使用了自定义映射，或其他网络的数值。",
    ),
    remedies=(SET_MLNX, SET_DCB),
    everywhere=Words(
        "mapped so on every host: the fabric's own map? Change no host; where the network team "
        "says so, declare commcheck_roce_dscp and commcheck_roce_priority",
        "所有主机均如此映射：或许是该网络自身的设定。请勿改动主机；若网络团队确认，"
        "请声明 commcheck_roce_dscp 与 commcheck_roce_priority",
    ),
)
TWICE = Cause(
    slug="dscp-mapped-twice",
    title=Words("RoCE DSCP is mapped twice", "RoCE DSCP 存在重复映射"),
    meaning=Words(
        "The table has two priorities for this DSCP, and which one is in force is up to the "
        "driver: the factory's map was written beside the site's.",
        "映射表中该 DSCP 有两个优先级，实际生效者取决于驱动：出厂映射与本站映射并存。",
    ),
    remedies=(SET_DCB, SET_MLNX),
)


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """One entry of the map, whatever PFC and trust say."""
    dscp, priority = want.dscp.value, want.priority.value
    named = f"{rail.label} ({rail.netdev})"
    if want.trust.value != "dscp":
        return not_applicable(f"{named} marks by {want.trust.value}: {want.trust.origin}")
    if seen.qos.dscp_prio is None:
        return undecidable(
            f"{named} does not tell its DSCP map",
            turn_on="a newer mlnx-tools, or iproute2 5.11 or newer, prints it",
        )
    mapped = sorted({prio for code, prio in seen.qos.dscp_prio if code == dscp})
    listed = bool(mapped)
    # What the table lacks is not marked: the kernel puts it into the port's default priority.
    found = mapped or [seen.qos.default_prio or 0]
    measured = {"dscp_priorities": found}
    says = f"{named} maps DSCP {dscp} to priority {' and '.join(map(str, found))}"
    says += "" if listed else " (not listed, the default)"
    places = {"netdev": str(rail.netdev), "dscp": str(dscp), "priority": str(priority)}
    if found == [priority]:
        return passed(says, measured=measured)
    if priority in found:
        return warned(TWICE, f"{says}, want only {priority}", measured=measured, **places)
    return failed(ELSEWHERE, f"{says}, want {priority}", measured=measured, **places)


CHECK = Check(
    id="physical.roce-dscp-map",
    title=Words("RoCE DSCP maps to its priority", "RoCE DSCP 映射到正确优先级"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    want=Want,
    judge=judge,
    needs=("physical.roce-trust-dscp",),
    causes=(ELSEWHERE, TWICE),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=qos_owner,
)

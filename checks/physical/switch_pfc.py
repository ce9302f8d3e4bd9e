"""The switch port has PFC on for the RoCE priority, as far as it says so.

Why: PFC needs both ends. The host's alone is no cure: a switch that does not take part ignores its
pause frames, or never sends any, and drops RoCE packets under incast.
Reads: what the switch announces by DCBX (IEEE 802.1Qaz) over LLDP: ``lldpctl -f json DEV``, or
``lldptool -t -n -i DEV`` (root). One verdict for each Ethernet rail.
By hand: ``lldptool -t -n -i DEV -V PFC``; on the switch itself: ``show priority-flow-control``.
Mend: on the switch: PFC on the RoCE priority of this port and of every hop, DSCP mapped to it.
Healthy though odd: most switches announce no DCBX even with PFC on: then nothing is known, and
nothing is judged. A switch that says it is willing takes the host's settings over.
"""

from __future__ import annotations

from commcheck.applies import qos_owner
from commcheck.check import (
    Check,
    Nothing,
    Unread,
    expects,
    failed,
    first_of,
    not_applicable,
    passed,
    tries,
    warned,
)
from commcheck.expect import FLOW_CONTROL, ROCE_PRIORITY
from commcheck.formats.lldp import Neighbour
from commcheck.formats.lldpctl import LLDPCTL
from commcheck.formats.lldptool import LLDPTOOL
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """Who is at the other end, and what it announces."""

    neighbours: tuple[Neighbour, ...] | Unread = tries(first_of(LLDPCTL, LLDPTOOL))


@dataclass(frozen=True, slots=True)
class Want:
    """What the fabric expects."""

    priority: Wanted[int] = expects(ROCE_PRIORITY)
    flow_control: Wanted[str] = expects(FLOW_CONTROL)


ON_SWITCH = Remedy(
    command="lldpctl -f json {netdev}",
    effect=Words(
        "Shows switch, port and what it announces (root). Have PFC switched on there for the "
        "priority, and on every hop.",
        "显示交换机、端口及其通告内容（需 root）。"
        "请网络团队在该端口及整条路径上启用该优先级的 PFC。",
    ),
    precondition=Words(
        "Changing PFC on a switch port may flap its link: host drained, one rail at a time.",
        "修改交换机端口 PFC 可能引起链路抖动：主机已排空，逐轨操作。",
    ),
    who="network team",
)

OFF = Cause(
    slug="switch-pfc-off",
    title=Words("Switch has PFC off for RoCE", "交换机未启用 RoCE 优先级 PFC"),
    meaning=Words(
        "The switch says that its port does not protect the RoCE priority: packets are dropped "
        "there under incast, whatever the host does.",
        "交换机通告该端口未保护 RoCE 优先级：无论主机如何配置，多打一拥塞时都会在此丢包。",
    ),
    remedies=(ON_SWITCH,),
)
WILLING = Cause(
    slug="switch-pfc-willing",
    title=Words("Switch waits for the host's PFC", "交换机等待主机下发 PFC"),
    meaning=Words(
        "The switch announces another PFC and is willing to take the host's: that works only while "
        "the host announces its own.",
        "交换机通告的 PFC 不同，但愿意采用主机配置：仅在主机持续通告时有效。",
    ),
    remedies=(ON_SWITCH,),
)


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """Silence is no finding: most switches announce nothing."""
    named = f"{rail.label} ({rail.netdev})"
    if want.flow_control.value != "pfc":
        return not_applicable(f"{named}: flow control is {want.flow_control}")
    if isinstance(seen.neighbours, Unread):
        return not_applicable(f"nothing tells the switch of {named}: {seen.neighbours.reason}")
    telling = [each for each in seen.neighbours if each.peer_pfc is not None]
    if not telling:
        return not_applicable(f"the switch of {named} announces no PFC")
    switch, priority = telling[0], want.priority.value
    on = sorted(switch.peer_pfc or ())
    shown = f"PFC on {', '.join(map(str, on))}" if on else "PFC off"
    says = f"{named}: {switch.name} port {switch.port or 'not told'} announces {shown}"
    measured = {"switch": switch.name, "switch_port": switch.port, "switch_pfc": on}
    if priority in on:
        return passed(says, measured=measured)
    reason = f"{says}, want it on {priority}"
    places = {"netdev": str(rail.netdev)}
    if switch.peer_pfc_willing:
        return warned(WILLING, f"{reason}, and is willing", measured=measured, **places)
    return failed(OFF, reason, measured=measured, **places)


CHECK = Check(
    id="physical.switch-pfc",
    title=Words("Switch protects RoCE too", "交换机同样保护 RoCE"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    want=Want,
    judge=judge,
    needs=("physical.nic-link-up", "physical.bluefield-mode"),
    causes=(OFF, WILLING),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=qos_owner,
)

"""Congestion control (ECN with DCQCN) is on for the RoCE priority, as sender and as receiver.

Why: ECN slows senders down before queues are full. Without it only PFC is left: it stops whole
ports, spreads from switch to switch, and slows ranks that have nothing to do with it.
Reads: ``/sys/class/net/DEV/ecn``, which the vendor's driver has. One verdict for each Ethernet
rail.
By hand: ``cat /sys/class/net/DEV/ecn/roce_np/enable/3 /sys/class/net/DEV/ecn/roce_rp/enable/3``.
Newer DOCA releases keep it in ``/sys/kernel/debug/mlx5/PCI/cc_params`` (root).
Mend: write 1 into both files; it works at once and is gone after a reboot.
On the switch: ECN marking (WRED) on the queue of the RoCE class, below where PFC begins.
Healthy though odd: drivers without these files are not judged. Fabrics that have their own
congestion control (Spectrum-X; declare ``commcheck_adaptive_routing: true``) may switch this one
off: a warning there. CNPs in another class than 48 are a matter of the fabric's plan.
"""

from __future__ import annotations

from commcheck.applies import qos_owner
from commcheck.check import Check, Nothing, expects, failed, not_applicable, passed, reads, warned
from commcheck.expect import ADAPTIVE_ROUTING, ROCE_PRIORITY
from commcheck.formats.roce_marking import ROCE_MARKING, RoceMarking
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The port's congestion control; None in it: the driver has no such files."""

    marking: RoceMarking = reads(ROCE_MARKING)


@dataclass(frozen=True, slots=True)
class Want:
    """Which priority carries RoCE, and whether the fabric has its own control."""

    priority: Wanted[int] = expects(ROCE_PRIORITY)
    adaptive_routing: Wanted[bool] = expects(ADAPTIVE_ROUTING)


def _enable(side: str, words: Words) -> Remedy:
    return Remedy(
        command=f"echo 1 > /sys/class/net/{{netdev}}/ecn/{side}/enable/{{priority}}",
        effect=words,
        precondition=Words(
            "The switches mark ECN on this class; the other hosts have it on too.",
            "交换机在该队列上启用了 ECN 标记；其他主机同样已启用。",
        ),
    )


NOTIFY = _enable(
    "roce_np",
    Words(
        "The port answers marked packets (CNP) at once. Gone at reboot unless made persistent.",
        "端口立即对带标记报文回送 CNP。未做持久化则重启后失效。",
    ),
)
REACT = _enable(
    "roce_rp",
    Words(
        "The port slows down when told, at once. Gone at reboot unless made persistent.",
        "端口收到通知后立即降速。未做持久化则重启后失效。",
    ),
)

OFF = Cause(
    slug="ecn-off",
    title=Words("ECN is off for RoCE", "RoCE 优先级未启用 ECN"),
    meaning=Words(
        "The port does not take part in congestion control: only PFC is left, and pauses spread. "
        "Usually left over from a test.",
        "端口未参与拥塞控制：只剩 PFC，暂停会扩散。多为测试遗留。",
    ),
    remedies=(NOTIFY, REACT),
)


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """Both sides: each port is a sender and a receiver."""
    marking, priority = seen.marking, want.priority.value
    named = f"{rail.label} ({rail.netdev})"
    if marking.notify is None or marking.react is None:
        return not_applicable(f"the driver of {named} shows no ECN settings in sysfs")
    off = [
        word
        for word, on in (("receiver (NP)", marking.notify), ("sender (RP)", marking.react))
        if priority not in on
    ]
    measured = {
        "ecn_np": priority in marking.notify,
        "ecn_rp": priority in marking.react,
        "cnp_dscp": marking.cnp_dscp,
    }
    cnp = "" if marking.cnp_dscp is None else f", CNP DSCP {marking.cnp_dscp}"
    if not off:
        return passed(f"{named} has ECN on for priority {priority}{cnp}", measured=measured)
    reason = f"{named} has ECN off for priority {priority} as {' and '.join(off)}, want it on"
    places = {"netdev": str(rail.netdev), "priority": str(priority)}
    if want.adaptive_routing.value:
        reason += ", unless the fabric's own congestion control is in use"
        return warned(OFF, reason, measured=measured, **places)
    return failed(OFF, reason, measured=measured, **places)


CHECK = Check(
    id="physical.roce-ecn",
    title=Words("ECN is on for RoCE", "RoCE 优先级已启用 ECN"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    want=Want,
    judge=judge,
    needs=("physical.nic-link-up", "physical.bluefield-mode"),
    causes=(OFF,),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=qos_owner,
)

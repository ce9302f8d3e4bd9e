"""Global pause is off on a PFC fabric, and on where the fabric is made for it.

Why: Global pause (802.3x) stops the whole link, every priority. On mlx5 it and PFC exclude each
other: whichever is switched on last takes the other away, so a script that sets both loses one.
Reads: ``ethtool -a DEV``. One verdict for each Ethernet rail.
By hand: ``ethtool -a DEV``; counters: ``ethtool -S DEV | grep global_pause`` (they exist on mlx5
only while it is in use).
Mend: see to PFC first: on mlx5 switching it on ends global pause by itself. Read both again after
a change.
On the switch: ``flowcontrol`` of the port off, priority-flow-control on; both ends the same.
Healthy though odd: some clouds run RoCE on global pause: declare ``commcheck_flow_control:
global``, and then it must be on. A fabric that is lossy by design (``none``) is not judged. virtio
and IPoIB have no global pause at all.
"""

from __future__ import annotations

from commcheck.applies import qos_owner
from commcheck.check import Check, Nothing, expects, failed, not_applicable, passed, reads
from commcheck.expect import FLOW_CONTROL
from commcheck.formats.ethtool_pause import ETHTOOL_PAUSE, EthtoolPause
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The port's setting; None: the driver has none."""

    pause: EthtoolPause | None = reads(ETHTOOL_PAUSE)


@dataclass(frozen=True, slots=True)
class Want:
    """How the fabric avoids loss."""

    flow_control: Wanted[str] = expects(FLOW_CONTROL)


def _set(switch: str, effect: Words) -> Remedy:
    return Remedy(
        command=f"ethtool -A {{netdev}} autoneg off rx {switch} tx {switch}",
        effect=effect,
        precondition=Words(
            "No job on the host, and the switch port is set alike; read PFC again afterwards.",
            "主机上没有作业，交换机端口配置一致；之后重新读取 PFC。",
        ),
    )


SET_OFF = _set(
    "off",
    Words(
        "A short interruption. Gone at reboot unless made persistent.",
        "短暂中断。未做持久化则重启后失效。",
    ),
)
SET_ON = _set(
    "on",
    Words(
        "A short interruption; on mlx5 it switches PFC off. Gone at reboot unless made persistent.",
        "短暂中断；在 mlx5 上会关闭 PFC。未做持久化则重启后失效。",
    ),
)

ON = Cause(
    slug="pause-global-on",
    title=Words("Global pause is on", "全局 pause 已启用"),
    meaning=Words(
        "One full queue stops the whole link, and on mlx5 PFC cannot work beside it: a driver's "
        "default, or an old tuning script.",
        "一个队列满就会暂停整条链路，且 mlx5 上与 PFC 互斥：驱动默认值或旧调优脚本所致。",
    ),
    remedies=(SET_OFF,),
)
OFF = Cause(
    slug="pause-global-missing",
    title=Words("Global pause is off", "全局 pause 未启用"),
    meaning=Words(
        "The fabric is made for global pause and this port does not take part: it drops packets "
        "under incast.",
        "网络依赖全局 pause，但该端口未启用：多打一拥塞时会丢包。",
    ),
    remedies=(SET_ON,),
)


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """Both directions, by what the fabric uses."""
    pause, flow_control = seen.pause, want.flow_control.value
    named = f"{rail.label} ({rail.netdev})"
    if flow_control == "none":
        return not_applicable(f"{named}: flow control is none: {want.flow_control.origin}")
    if pause is None:
        return not_applicable(f"the driver of {named} has no global pause")
    measured = {"pause_rx": pause.rx, "pause_tx": pause.tx}
    says = f"{named} has global pause rx {_word(pause.rx)}, tx {_word(pause.tx)}"
    wanted = flow_control == "global"
    if pause.rx is wanted and pause.tx is wanted:
        return passed(says, measured=measured)
    return failed(
        OFF if wanted else ON,
        f"{says}, want both {_word(wanted)}: flow control is {flow_control}",
        measured=measured,
        netdev=rail.netdev,
    )


def _word(switch: bool) -> str:
    return "on" if switch else "off"


CHECK = Check(
    id="physical.pause-global-off",
    title=Words("Global pause fits the fabric", "全局 pause 与网络一致"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    want=Want,
    judge=judge,
    # On mlx5 lost PFC and global pause are one fault, and PFC's remedy mends both.
    needs=("physical.pfc-enabled",),
    causes=(ON, OFF),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=qos_owner,
)

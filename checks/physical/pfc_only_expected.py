"""PFC is on for no priority that nobody asked for.

Why: A lossless priority can be paused. With all eight lossless a burst of storage or TCP traffic
pauses training too, pause spreads from switch to switch, and in a loop it locks up. NICs and
switches have buffers for one or two lossless classes, not for eight.
Reads: ``mlnx_qos -i DEV``, or ``dcb -j pfc show dev DEV`` where that is not installed, or ``niccli
get_qos`` (root) on Broadcom without either. One verdict for each Ethernet rail; an extra priority
is a warning.
By hand: ``mlnx_qos -i DEV``, the row ``enabled`` below "PFC configuration:".
Mend: drain the host: a changed PFC mask takes the mlx5 port down and up. Usually somebody copied
a line of all ones, or switched another priority on and left the old one.
On the switch: the same priorities lossless as on the host, and no others.
Healthy though odd: storage over RoCE in a lossless class of its own: declare both,
``commcheck_lossless_priorities: [3, 5]``. The RoCE priority always counts as expected.
"""

from __future__ import annotations

from commcheck.applies import qos_owner
from commcheck.check import (
    Check,
    Nothing,
    expects,
    not_applicable,
    passed,
    reads,
    warned,
)
from commcheck.expect import FLOW_CONTROL, LOSSLESS_PRIORITIES, ROCE_PRIORITY
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
    """Which priorities may be lossless."""

    lossless: Wanted[tuple[int, ...] | None] = expects(LOSSLESS_PRIORITIES)
    priority: Wanted[int] = expects(ROCE_PRIORITY)
    flow_control: Wanted[str] = expects(FLOW_CONTROL)


FLAP = Words(
    "Takes the mlx5 port down and up: every job on that rail sees a link flap. Gone at reboot or "
    "driver restart unless made persistent.",
    "mlx5 端口会先断后通：该轨上的作业都会看到链路抖动。未做持久化则重启或重载驱动后失效。",
)
DRAINED = Words(
    "Host drained, one rail at a time, never the NIC that carries SSH; nobody uses the other "
    "priorities as lossless (storage), else declare them in commcheck_lossless_priorities.",
    "主机已排空，逐轨操作，绝不动承载 SSH 的网卡；确认其他优先级没有无损用途（如存储），"
    "否则写入 commcheck_lossless_priorities。",
)
SET_MLNX = Remedy(
    command="mlnx_qos -i {netdev} --pfc {mask}",
    driver="mlx5_core",
    effect=FLAP,
    precondition=DRAINED,
)
SET_DCB = Remedy(
    command="dcb pfc set dev {netdev} prio-pfc "
    "0:{p0} 1:{p1} 2:{p2} 3:{p3} 4:{p4} 5:{p5} 6:{p6} 7:{p7}",
    effect=Words("The same where mlnx_qos is not installed.", "未安装 mlnx_qos 时的等效命令。"),
    precondition=DRAINED,
)

EXTRA = Cause(
    slug="pfc-extra-priorities",
    title=Words("PFC on more than expected", "PFC 启用了多余的优先级"),
    meaning=Words(
        "Priorities are lossless that nobody asked for: their traffic can pause training, and "
        "pause can spread through the fabric.",
        "启用了多余的无损优先级：其流量可能使训练流量被暂停，暂停还会在网络中扩散。",
    ),
    remedies=(SET_MLNX, SET_DCB),
)


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """What is on beside what may be on."""
    named = f"{rail.label} ({rail.netdev})"
    if want.flow_control.value != "pfc":
        return not_applicable(
            f"{named}: flow control is {want.flow_control.value}: {want.flow_control.origin}"
        )
    on = seen.qos.pfc
    expected = {want.priority.value, *(want.lossless.value or ())}
    extra = on - expected
    measured = {"pfc_priorities": sorted(on)}
    if not extra:
        return passed(f"{named} has PFC on no other priority", measured=measured)
    keep = on & expected
    flags = ["on" if prio in keep else "off" for prio in range(8)]
    return warned(
        EXTRA,
        f"{named} has PFC on {_listed(on)}, want it on {_listed(expected)} only",
        measured=measured,
        netdev=rail.netdev,
        mask=",".join(str(int(prio in keep)) for prio in range(8)),
        p0=flags[0],
        p1=flags[1],
        p2=flags[2],
        p3=flags[3],
        p4=flags[4],
        p5=flags[5],
        p6=flags[6],
        p7=flags[7],
    )


def _listed(priorities: set[int] | frozenset[int]) -> str:
    return ", ".join(map(str, sorted(priorities)))


CHECK = Check(
    id="physical.pfc-only-expected",
    title=Words("PFC on no other priority", "没有多余的 PFC 优先级"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    want=Want,
    judge=judge,
    # PFC on the wrong priority is one finding, not also an extra one.
    needs=("physical.pfc-enabled",),
    causes=(EXTRA,),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=qos_owner,
)

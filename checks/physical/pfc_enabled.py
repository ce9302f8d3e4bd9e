"""PFC is on for the RoCE priority.

Why: RoCE needs a lossless class. With PFC off one full switch buffer drops packets, go-back-N sends
everything after them again, and busbw falls from line rate to a few GB/s. It strikes only under
incast, so a quick test between two hosts does not show it.
Reads: ``mlnx_qos -i DEV``, or ``dcb -j pfc show dev DEV`` where that is not installed, or ``niccli
get_qos`` (root) on Broadcom without either. One verdict for each Ethernet rail.
By hand: ``mlnx_qos -i DEV``, the row ``enabled`` below "PFC configuration:"; counters:
``ethtool -S DEV | grep prio3_pause`` (they exist only for priorities with PFC on).
Mend: look at the switch first. Then drain the host: a changed PFC mask takes the mlx5 port down and
up, and every job on that rail sees a link flap. One rail at a time, never the NIC of your SSH
session. The setting is gone after a reboot or a driver restart unless a systemd unit or the
vendor's persistence brings it back.
On the switch: PFC on the same priority of the host's port and of every hop, DSCP mapped to it, a
PFC watchdog. PFC on the NIC alone is no cure: its pause frames are ignored, or sent for a class
that nobody protects. ``lldptool -tni DEV`` shows what the neighbour says.
Healthy though odd: fabrics that are lossy by design, or use global pause. Declare
``commcheck_flow_control: none`` or ``global``. A rented fabric may use another priority than 3
(NCCL_IB_TC=136 marks for 4, 160 for 5): declare ``commcheck_roce_priority``. PFC on other
priorities as well does not fail here. The NIC's room for packets on their way is judged where
mlnx_qos tells of it, and only warns. A virtual function cannot tell; of a bond each port is asked.
On BlueField in DPU mode the Arm side owns the setting.
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
    warned,
)
from commcheck.expect import FLOW_CONTROL, ROCE_PRIORITY
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
    """What the fabric expects of the host."""

    priority: Wanted[int] = expects(ROCE_PRIORITY)
    flow_control: Wanted[str] = expects(FLOW_CONTROL)


FLAP = Words(
    "Takes the mlx5 port down and up: every job on that rail sees a link flap. Gone at reboot or "
    "driver restart unless made persistent.",
    "mlx5 端口会先断后通：该轨上的作业都会看到链路抖动。未做持久化则重启或重载驱动后失效。",
)
DRAINED = Words(
    "Host drained, one rail at a time, never the NIC that carries SSH; the switch port and the "
    "whole path have the same priority lossless. All eight flags are written: keep those that are "
    "lossless on purpose (storage), drop those that are not.",
    "主机已排空，逐轨操作，绝不动承载 SSH 的网卡；交换机端口与整条路径的同一优先级已配置无损。"
    "八个标志会全部写入：保留有意无损的优先级（如存储），去掉无用的。",
)
SWITCH_FIRST = Remedy(
    command="lldptool -tni {netdev}",
    effect=Words(
        "Shows the switch port. Have PFC checked there on this priority, and on the whole path.",
        "显示对端交换机与端口。请网络团队确认该端口及整条路径在此优先级上启用 PFC。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
    who="network team",
)
SET_MLNX = Remedy(
    command="mlnx_qos -i {netdev} --pfc {mask}",
    driver="mlx5_core",
    effect=FLAP,
    precondition=DRAINED,
)
SET_DCB = Remedy(
    command="dcb pfc set dev {netdev} prio-pfc {priority}:on",
    effect=Words(
        "The same where mlnx_qos is not installed; other priorities stay as they are.",
        "未安装 mlnx_qos 时的等效命令；其他优先级保持不变。端口同样会断后重通。",
    ),
    precondition=DRAINED,
)

OFF = Cause(
    slug="pfc-off",
    title=Words("PFC is off", "PFC 未启用"),
    meaning=Words(
        "No priority is lossless: under incast the switch drops RoCE packets. Usually lost at a "
        "reboot or driver restart.",
        "没有任何无损优先级：多打一拥塞时交换机会丢弃 RoCE 报文。通常因重启或重载驱动而丢失配置。",
    ),
    remedies=(SWITCH_FIRST, SET_MLNX, SET_DCB),
    everywhere=Words(
        "off on every host: lossy by design? Where the network team says so, and no packets are "
        "lost under load, declare commcheck_flow_control: none",
        "所有主机均未启用：该网络或许按有损设计。若网络团队确认且负载下无丢包，"
        "请声明 commcheck_flow_control: none",
    ),
)
WRONG_PRIORITY = Cause(
    slug="pfc-wrong-priority",
    title=Words("PFC on another priority", "PFC 启用在其他优先级上"),
    meaning=Words(
        "PFC protects a class that RoCE does not use; RoCE itself is lossy. GPU fabrics usually "
        "use 3, Ascend fabrics 4: one number for both is a common slip.",
        "PFC 保护了 RoCE 未使用的队列，RoCE 本身仍会丢包。"
        "GPU 网络常用 3，昇腾网络常用 4，容易混用。",
    ),
    remedies=(SWITCH_FIRST, SET_MLNX, SET_DCB),
    everywhere=Words(
        "on another priority on every host: the fabric's own? Change no host; where the "
        "network team says so, declare commcheck_roce_priority and commcheck_roce_dscp",
        "所有主机均启用在其他优先级：或许是该网络自身的设定。请勿改动主机；若网络团队确认，"
        "请声明 commcheck_roce_priority 与 commcheck_roce_dscp",
    ),
)
NOT_WANTED = Cause(
    slug="pfc-on-lossy-fabric",
    title=Words("PFC on a fabric without it", "在不使用 PFC 的网络上启用了 PFC"),
    meaning=Words(
        "The inventory says that the fabric does not use PFC, and the NIC does: the two ends "
        "disagree.",
        "清单声明该网络不使用 PFC，但网卡已启用：两端配置不一致。",
    ),
    remedies=(SWITCH_FIRST, SET_MLNX),
)

NO_ROOM = Cause(
    slug="pfc-no-headroom",
    title=Words("PFC without room in the NIC", "PFC 缺少接收缓冲余量"),
    meaning=Words(
        "When the NIC tells the switch to stop, packets are still on the cable, and the NIC keeps "
        "too little room for them: they are dropped, although PFC is on.",
        "网卡通知交换机暂停时，线缆上仍有在途报文，而网卡预留的缓冲不足：即使启用了 PFC 也会丢包。",
    ),
    remedies=(
        Remedy(
            command="mlnx_qos -i {netdev}",
            driver="mlx5_core",
            effect=Words(
                "Shows the cable's length and the buffers. Then set the true length in metres "
                "(--cable_len; the driver's default is 7): buffers are computed from it anew.",
                "显示线缆长度与各接收缓冲。随后用 --cable_len 设置实际长度"
                "（米，驱动默认 7），缓冲会据此重新计算。",
            ),
            precondition=Words(
                "Reading is free; set it with no job on the host.",
                "读取无影响；设置时主机上不能有作业。",
            ),
        ),
    ),
)


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """On where it should be; what else is on is another check's."""
    on, priority = seen.qos.pfc, want.priority.value
    named = f"{rail.label} ({rail.netdev})"
    is_on = "PFC on " + ", ".join(map(str, sorted(on))) if on else "PFC off"
    measured = {"pfc_priorities": sorted(on)}
    if want.flow_control.value != "pfc":
        declared = f"flow control is {want.flow_control.value}: {want.flow_control.origin}"
        if not on:
            return not_applicable(f"{named} has PFC off, and {declared}")
        return warned(
            NOT_WANTED,
            f"{named} has {is_on}, but {declared}",
            measured=measured,
            netdev=rail.netdev,
            mask=_mask(frozenset()),
        )
    if priority in on:
        if lack := _lacks_room(seen.qos, priority):
            reason = f"{named} has {is_on}, but {lack}"
            return warned(NO_ROOM, reason, measured=measured, netdev=rail.netdev)
        return passed(f"{named} has {is_on}", measured=measured)
    return failed(
        WRONG_PRIORITY if on else OFF,
        f"{named} has {is_on}, want it on {priority}",
        measured=measured,
        netdev=rail.netdev,
        priority=priority,
        mask=_mask(on | {priority}),
    )


def _lacks_room(qos: Qos, priority: int) -> str:
    """What is wrong with the buffer of a lossless priority; "" where nothing is, or is told."""
    if qos.cable_m == 0:
        return "room is kept for a cable of 0 m"
    sizes, buffers = qos.buffers_bytes, qos.prio_buffer
    if sizes is None or buffers is None or not any(sizes) or sizes[buffers[priority]]:
        return ""
    return f"priority {priority} goes into receive buffer {buffers[priority]}, of 0 bytes"


def _mask(priorities: frozenset[int]) -> str:
    return ",".join(str(int(prio in priorities)) for prio in range(8))


CHECK = Check(
    id="physical.pfc-enabled",
    title=Words("PFC on the RoCE priority", "RoCE 优先级已启用 PFC"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    want=Want,
    judge=judge,
    needs=("physical.nic-link-up", "physical.bluefield-mode"),
    causes=(OFF, WRONG_PRIORITY, NOT_WANTED, NO_ROOM),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=qos_owner,
)

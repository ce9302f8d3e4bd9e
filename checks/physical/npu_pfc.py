"""PFC is on for the priority that HCCL uses.

Why: HCCL sends RoCE with traffic class 132, which is DSCP 33 and priority 4. Where that priority
is not lossless the switch drops packets under incast, and an all-reduce between hosts falls to a
fraction. Many switches have 3 as their default, as GPU fabrics use it.
Reads: ``hccn_tool -i N -pfc -g``. One verdict for each NPU.
By hand: ``hccn_tool -i N -pfc -g`` (root): a 1 below priority 4.
Mend: the switch first. Then drain the host and set it: ``-pfc -s bitmap 0,0,0,0,1,0,0,0``.
On the switch: PFC on 4 on the port and every hop, DSCP 33 mapped to it.
Healthy though odd: a fabric with other numbers declares ``commcheck_roce_priority``, and jobs set
HCCL_RDMA_TC and HCCL_RDMA_SL to match. Bonded NPUs have a table for each of their ports.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, expects, failed, not_applicable, passed, reads
from commcheck.expect import FLOW_CONTROL, ROCE_PRIORITY
from commcheck.formats.hccn_port import PFC, Pfc, SlavePfc
from commcheck.lazy import dataclass
from commcheck.model import Accelerator, Cause, Remedy, Verdict, Wanted, Words
from commcheck.npu import ASCEND, SWITCH_FIRST, npus_only


@dataclass(frozen=True, slots=True)
class Seen:
    """The ports' settings."""

    pfc: Pfc = reads(PFC)


@dataclass(frozen=True, slots=True)
class Want:
    """What the fabric expects of the host."""

    priority: Wanted[int] = expects(ROCE_PRIORITY)
    flow_control: Wanted[str] = expects(FLOW_CONTROL)


SET = Remedy(
    command="hccn_tool -i {npu} -pfc -s bitmap {mask}",
    effect=Words(
        "Sets all eight priorities of the port; running jobs are cut.",
        "设置端口全部八个优先级；会中断运行中的作业。",
    ),
    precondition=SWITCH_FIRST,
)

OFF = Cause(
    slug="npu-pfc-off",
    title=Words("PFC is off on an NPU", "NPU 未启用 PFC"),
    meaning=Words(
        "No priority of the port is lossless: under incast the switch drops HCCL's packets.",
        "端口没有无损优先级：多打一拥塞时交换机会丢弃 HCCL 报文。",
    ),
    remedies=(SET,),
)
OTHER = Cause(
    slug="npu-pfc-wrong-priority",
    title=Words("NPU has PFC on another priority", "NPU 的 PFC 优先级不符"),
    meaning=Words(
        "PFC protects a priority that HCCL does not use. Ascend fabrics use 4, GPU fabrics 3.",
        "PFC 保护了 HCCL 未使用的优先级。昇腾网络使用 4，GPU 网络使用 3。",
    ),
    remedies=(SET,),
)


def judge(seen: Seen, npu: Accelerator, want: Want, _limits: Nothing) -> Verdict:
    """On where it should be, on every port of the NPU; what else is on does not fail here."""
    priority, flow = want.priority.value, want.flow_control
    slaves = seen.pfc.of(npu.index)
    if flow.value != "pfc":
        return not_applicable(f"flow control is {flow.value}: {flow.origin}")
    measured = {"pfc_priorities": sorted({p for each in slaves for p in each.priorities})}
    for each in slaves:
        if priority not in each.priorities:
            mask = ",".join(str(int(p in each.priorities | {priority})) for p in range(8))
            reason = f"{npu.label}{_shown(each)}, want it on {priority}"
            cause = OTHER if each.priorities else OFF
            return failed(cause, reason, measured=measured, npu=npu.index, mask=mask)
    return passed(f"{npu.label}{_shown(slaves[0])}", measured=measured)


def _shown(slave: SlavePfc) -> str:
    on = ", ".join(map(str, sorted(slave.priorities)))
    where = f" port {slave.netdev}" if slave.netdev else ""
    return f"{where} has PFC on {on}" if on else f"{where} has PFC off"


CHECK = Check(
    id="physical.npu-pfc",
    title=Words("PFC on HCCL's priority", "HCCL 优先级已启用 PFC"),
    subject=Accelerator,
    seen=Seen,
    want=Want,
    judge=judge,
    causes=(OFF, OTHER),
    platforms=ASCEND,
    not_applicable=npus_only,
)

"""Pause frames of the NPU's port belong to the priority that HCCL uses.

Why: A switch that sends PFC for another priority than 4 has put HCCL's packets into that queue, or
pauses a class that nobody uses; HCCL's own class is not protected then, though PFC is on.
Reads: ``hccn_tool -i N -stat -g`` at the start and the end of the visit, the counters
``mac_*_pfc_priN_pkt_num``. One verdict for each NPU.
By hand: ``hccn_tool -i N -stat -g | grep pfc_pri`` (root), twice.
Mend: align the switch: DSCP 33 to priority 4, PFC on 4. ``-stat -c`` sets the counters to zero.
On the switch: the map from DSCP to priority of the port, and its PFC.
Healthy though odd: totals of another priority that stand still may be of the time before the switch
was set right: they only warn. No pause frames at all are as good.
"""

from __future__ import annotations

import re

from commcheck.check import (
    Check,
    Nothing,
    Watched,
    expects,
    failed,
    passed,
    undecidable,
    warned,
    watches,
)
from commcheck.counters import Counters, errors
from commcheck.expect import ROCE_PRIORITY
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_counters import STAT, watched
from commcheck.lazy import dataclass
from commcheck.model import Accelerator, Cause, Remedy, Verdict, Wanted, Words
from commcheck.npu import ASCEND, READS, npus_only

NAMES = tuple(f"mac_{way}_pfc_pri{prio}_pkt_num" for way in ("rx", "tx") for prio in range(8))


@dataclass(frozen=True, slots=True)
class Seen:
    """What the ports count."""

    counters: Watched[PerNpu[Counters]] = watches(STAT)


@dataclass(frozen=True, slots=True)
class Want:
    """What the fabric expects of the host."""

    priority: Wanted[int] = expects(ROCE_PRIORITY)


OTHER = Cause(
    slug="npu-paused-on-wrong-priority",
    title=Words("NPU is paused on another priority", "NPU 在其他优先级上收到暂停帧"),
    meaning=Words(
        "Switch and NPU disagree on the priority of HCCL: its packets lie in another queue.",
        "交换机与 NPU 的 HCCL 优先级不一致：报文进入了其他队列。",
    ),
    remedies=(
        Remedy(
            command="hccn_tool -i {npu} -lldp -g",
            effect=Words(
                "Shows the switch port. Have its DSCP map and PFC set for HCCL's priority.",
                "显示对端交换机端口。请按 HCCL 优先级配置其 DSCP 映射与 PFC。",
            ),
            precondition=READS,
            who="network team",
        ),
    ),
)


def judge(seen: Seen, npu: Accelerator, want: Want, _limits: Nothing) -> Verdict:
    """Growth on another priority fails, old totals there alone warn."""
    found = errors(watched(seen.counters, npu.index), NAMES)
    if not found.there:
        return undecidable(f"{npu.label} counts no pause frames", turn_on="update the driver")
    priority = want.priority.value
    wrong = found.only(name for name in NAMES if _priority(name) != priority)
    grown = wrong.grown
    if grown.added:
        reason = f"{npu.label}: {grown}, want pauses on priority {priority} alone"
        return failed(OTHER, reason, measured=found.measured, npu=npu.index)
    if wrong.totals and not found.only(set(NAMES) - set(wrong.there)).totals:
        told = ", ".join(f"{name} {count}" for name, count in wrong.totals.items())
        reason = f"{npu.label}: {told} and none on priority {priority}; none of it in this visit"
        return warned(OTHER, reason, measured=found.measured, npu=npu.index)
    paused = "none ever" if found.never else f"on priority {priority}"
    return passed(f"{npu.label}: pause frames {paused}", measured=found.measured)


def _priority(name: str) -> int:
    return int(re.sub(r"\D", "", name))


CHECK = Check(
    id="physical.npu-pfc-priority",
    title=Words("NPU pauses on HCCL's priority", "NPU 暂停帧优先级正确"),
    subject=Accelerator,
    seen=Seen,
    want=Want,
    judge=judge,
    needs=("physical.npu-pfc",),
    causes=(OTHER,),
    platforms=ASCEND,
    not_applicable=npus_only,
)

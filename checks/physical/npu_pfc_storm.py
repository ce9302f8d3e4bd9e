"""The NPU does not stop the switch for long.

Why: An NPU that cannot take its packets pauses the switch port; that port pauses others, and one
slow device stops a whole fabric. The NPU counts pauses that are too long.
Reads: ``hccn_tool -i N -pfc_stat -g`` at the start and the end of the visit, and what an earlier
run read on the same boot. One verdict for each NPU.
By hand: ``hccn_tool -i N -pfc_stat -g | grep _cnt`` (root), twice.
Mend: find why that NPU is slow: its health, its memory, its PCIe link; then the job on it.
On the switch: its PFC watchdog names the same port.
Healthy though odd: totals that stand still are of an earlier incident, and only warn.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, Watched, undecidable, warned, watches
from commcheck.counters import Counters, errors
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_counters import PFC_STAT, watched
from commcheck.growing import Limits, settle
from commcheck.lazy import dataclass
from commcheck.model import Accelerator, Cause, Remedy, Status, Verdict, Words
from commcheck.npu import ASCEND, READS, npus_only

NAMES = tuple(f"tx_pfc{priority}_duration_err_cnt" for priority in range(8))


@dataclass(frozen=True, slots=True)
class Seen:
    """How often it paused the switch for too long."""

    counters: Watched[PerNpu[Counters]] = watches(PFC_STAT)


STORM = Cause(
    slug="npu-pfc-storm",
    title=Words("NPU stops the switch", "NPU 持续反压交换机"),
    meaning=Words(
        "The NPU paused the switch port for longer than its own limit: it does not take its "
        "packets, and others wait behind it.",
        "NPU 对交换机端口的暂停时间超过自身门限：它无法及时接收报文，其他流量随之受阻。",
    ),
    remedies=(
        Remedy(
            command="npu-smi info",
            effect=Words(
                "Shows health, memory and load of the NPUs: find what makes this one slow.",
                "显示各 NPU 的健康状态、显存与负载：定位该 NPU 变慢的原因。",
            ),
            precondition=READS,
        ),
    ),
)


def judge(seen: Seen, npu: Accelerator, _want: Nothing, limits: Limits) -> Verdict:
    """Growth fails, old totals warn."""
    found = errors(watched(seen.counters, npu.index), NAMES)
    if not found.there:
        return undecidable(f"{npu.label} counts no long pauses", turn_on="update the driver")
    verdict = settle(found, npu, STORM, limits)
    if found.never or verdict.status in (Status.FAIL, Status.WARN):
        return verdict
    told = ", ".join(f"{name} {count}" for name, count in found.totals.items())
    reason = f"{npu.label}: {told}; none in this visit"
    return warned(STORM, reason, measured=found.measured, npu=npu.index)


CHECK = Check(
    id="physical.npu-pfc-storm",
    title=Words("NPU does not stop the switch", "NPU 无 PFC 风暴"),
    subject=Accelerator,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.npu-link-up",),
    causes=(STORM,),
    platforms=ASCEND,
    not_applicable=npus_only,
)

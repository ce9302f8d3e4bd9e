"""The NPU's link did not go down in the last day.

Why: A link that is up now and was down an hour ago ended the job that ran then, and will end the
next. HCCL reports a timeout and no link.
Reads: ``hccn_tool -i N -link_stat -g``. One verdict for each NPU.
By hand: ``hccn_tool -i N -link_stat -g`` (root), the records LINK DOWN, newest first.
Mend: clean or replace fibre and module; look at the log of the switch port.
On the switch: its own log of the port tells whether it was shut by somebody.
Healthy though odd: one single time may be a switch that was restarted: it warns. The NPU's clock
counts, and it keeps only the last records.
"""

from __future__ import annotations

from commcheck.check import Check, Explained, Nothing, failed, limit, passed, reads, warned
from commcheck.counters import length
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_history import LINK_STAT, LinkHistory
from commcheck.lazy import dataclass
from commcheck.model import Accelerator, Cause, Verdict, Words
from commcheck.npu import ASCEND, CLEAN, npus_only


@dataclass(frozen=True, slots=True)
class Seen:
    """What the links did."""

    history: PerNpu[LinkHistory] = reads(LINK_STAT)


@dataclass(frozen=True, slots=True)
class Limits:
    """How far back, and how often."""

    recent_h: float = limit(24.0, unit="hours back", source="MindCluster looks at a day")
    tolerated: int = limit(
        1, unit="times down", source="own default: one may be a switch that was restarted"
    )


FLAPS = Cause(
    slug="npu-link-flaps",
    title=Words("NPU link went down", "NPU 链路抖动"),
    meaning=Words(
        "The link was lost and came back: a marginal module or fibre, or a switch port that was "
        "reset.",
        "链路曾断开又恢复：光模块或光纤处于临界状态，或交换机端口被重置。",
    ),
    remedies=(CLEAN,),
)


def judge(seen: Seen, npu: Accelerator, _want: Nothing, limits: Limits) -> Verdict:
    """More than one loss in a day fails, one warns."""
    history = seen.history.of(npu.index)
    recent = 3600 * limits.recent_h
    downs = [ago for ago, state in history.changes if state == "DOWN" and ago <= recent]
    measured = {"downs": len(downs), "ups_since_start": history.ups}
    span = length(recent)
    if not downs:
        return passed(f"{npu.label} was not down in {span}", measured=measured)
    say = failed if len(downs) > limits.tolerated else warned
    times = "once" if len(downs) == 1 else f"{len(downs)} times"
    reason = f"{npu.label} was down {times} in {span}, last {length(min(downs))} ago; want never"
    return say(FLAPS, reason, measured=measured, npu=npu.index)


CHECK = Check(
    id="physical.npu-link-flaps",
    title=Words("NPU link stays up", "NPU 链路无抖动"),
    subject=Accelerator,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.npu-link-up",),
    causes=(FLAPS,),
    explained_by=(Explained("npu-optic-power", "same-rail", always=False),),
    platforms=ASCEND,
    not_applicable=npus_only,
)

"""The NPU sends no RoCE packet twice.

Why: A packet that is lost between two NPUs is waited for, then all after it are sent again. In a
profile that is a notify-wait of about 4 s; in a job, a step that is slow for no reason.
Reads: ``hccn_tool -i N -stat -g`` at the start and the end of the visit, and what an earlier run
read on the same boot. One verdict for each NPU.
By hand: ``hccn_tool -i N -stat -g | grep -E 'rty|out_of_order|unexpected_ack'`` (root), twice.
Mend: align PFC and DSCP of switch and NPU, look for the port that drops; then read again.
On the switch: drops of the queue of priority 4 on every hop.
Healthy though odd: totals that stand still are of an earlier incident. Answers that nothing waits
for (``roce_unexpected_ack_num``) are thrown away and harm nothing: alone they warn.
"""

from __future__ import annotations

from commcheck.check import Check, Explained, Nothing, Watched, undecidable, watches
from commcheck.counters import Counters, errors
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_counters import STAT, watched
from commcheck.growing import Limits, settle
from commcheck.lazy import dataclass
from commcheck.model import Accelerator, Cause, Remedy, Verdict, Words
from commcheck.npu import ASCEND, READS, npus_only

LOST = ("roce_new_pkt_rty_num", "roce_out_of_order_num")
NAMES = (*LOST, "roce_unexpected_ack_num")
"""CANN documentation: packets sent again, out of order, and answers to none. The last are discarded
without effect: Ascend DCMI API reference, dcmi_get_netdev_pkt_stats_info."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the ports count."""

    counters: Watched[PerNpu[Counters]] = watches(STAT)


LOSS = Cause(
    slug="npu-packet-loss",
    title=Words("NPU packets are lost", "NPU 丢包重传"),
    meaning=Words(
        "Packets between NPUs are lost and sent again: PFC or DSCP differ somewhere on the path, "
        "or a link damages them.",
        "NPU 之间丢包并重传：路径上 PFC 或 DSCP 配置不一致，或链路误码。",
    ),
    remedies=(
        Remedy(
            command="hccn_tool -i {npu} -stat -g",
            effect=Words(
                "Shows the counters. Have PFC, DSCP map and drops of the path looked at.",
                "显示计数器。请检查路径上的 PFC、DSCP 映射与丢包。",
            ),
            precondition=READS,
            who="network team",
        ),
    ),
)


def judge(seen: Seen, npu: Accelerator, _want: Nothing, limits: Limits) -> Verdict:
    """Growth fails; of answers alone it warns."""
    found = errors(watched(seen.counters, npu.index), NAMES)
    if not found.there:
        return undecidable(f"{npu.label} counts no retransmission", turn_on="update the driver")
    return settle(found, npu, LOSS, limits, advisory=not found.only(LOST).grown.added)


CHECK = Check(
    id="physical.npu-retransmit",
    title=Words("NPU sends nothing twice", "NPU 无重传"),
    subject=Accelerator,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.npu-link-up",),
    causes=(LOSS,),
    explained_by=(
        Explained("npu-bad-packets", "same-rail"),
        Explained("npu-link-flaps", "same-rail"),
        # A priority that is not lossless loses packets where many send to one, and not else.
        Explained("npu-pfc-off", "same-rail", always=False),
        Explained("npu-pfc-wrong-priority", "same-rail", always=False),
        Explained("npu-optic-power", "same-rail", always=False),
        Explained("npu-fec-off", "same-rail", always=False),
    ),
    platforms=ASCEND,
    not_applicable=npus_only,
)

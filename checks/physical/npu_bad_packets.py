"""The NPU's port receives no damaged packets.

Why: A dirty connector or a failing module damages packets; each is dropped, and with RoCE all after
it are sent again.
Reads: ``hccn_tool -i N -stat -g`` at the start and the end of the visit, and what an earlier run
read on the same boot. One verdict for each NPU.
By hand: ``hccn_tool -i N -stat -g | grep -E 'bad_pkt|fcs_err|rx_err'`` (root), twice.
Mend: clean both ends of the fibre, replace fibre and module one at a time.
On the switch: errors of the same port tell which direction is damaged.
Healthy though odd: old releases do not count FCS errors; the others tell enough.
"""

from __future__ import annotations

from commcheck.check import Check, Explained, Nothing, Watched, undecidable, watches
from commcheck.counters import Counters, errors
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_counters import STAT, watched
from commcheck.growing import Limits, settle
from commcheck.lazy import dataclass
from commcheck.model import Accelerator, Cause, Verdict, Words
from commcheck.npu import ASCEND, CLEAN, npus_only

NAMES = ("mac_rx_bad_pkt_num", "mac_rx_fcs_err_pkt_num", "roce_rx_err_pkt_num")


@dataclass(frozen=True, slots=True)
class Seen:
    """What the ports count."""

    counters: Watched[PerNpu[Counters]] = watches(STAT)


DAMAGED = Cause(
    slug="npu-bad-packets",
    title=Words("NPU receives damaged packets", "NPU 收到错误报文"),
    meaning=Words(
        "The link damages packets: a dirty connector, a failing fibre or module.",
        "链路损坏报文：连接器脏污，光纤或光模块故障。",
    ),
    remedies=(CLEAN,),
)


def judge(seen: Seen, npu: Accelerator, _want: Nothing, limits: Limits) -> Verdict:
    """Growth fails."""
    found = errors(watched(seen.counters, npu.index), NAMES)
    if not found.there:
        return undecidable(f"{npu.label} counts no damaged packets", turn_on="update the driver")
    return settle(found, npu, DAMAGED, limits)


CHECK = Check(
    id="physical.npu-bad-packets",
    title=Words("NPU receives whole packets", "NPU 无错误报文"),
    subject=Accelerator,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.npu-link-up",),
    causes=(DAMAGED,),
    explained_by=(
        Explained("npu-optic-power", "same-rail"),
        Explained("npu-fec-off", "same-rail"),
    ),
    platforms=ASCEND,
    not_applicable=npus_only,
)

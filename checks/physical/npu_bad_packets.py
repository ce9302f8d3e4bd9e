"""The NPU's port receives no damaged packets.

Why: A dirty connector or a failing module damages packets; each is dropped, and with RoCE all after
it are sent again.
Reads: ``hccn_tool -i N -stat -g`` at the start and the end of the visit, and what an earlier run
read on the same boot. One verdict for each NPU.
By hand: ``hccn_tool -i N -stat -g | grep -E 'bad_pkt|fcs_err|rx_err|verif'`` (root), twice.
Mend: clean both ends of the fibre, replace fibre and module one at a time.
On the switch: errors of the same port tell which direction is damaged.
Healthy though odd: old releases do not count FCS errors; the others tell enough. Packets that came
whole over the link and are wrong inside (``roce_verification_err_num``: invariant CRC, length, UDP
port) may also be strays that are no RoCE: a warning.
"""

from __future__ import annotations

from commcheck.check import Check, Explained, Nothing, Watched, undecidable, watches
from commcheck.counters import Counters, errors
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_counters import STAT, watched
from commcheck.growing import Limits, settle
from commcheck.lazy import dataclass
from commcheck.model import Accelerator, Cause, Remedy, Status, Verdict, Words
from commcheck.npu import ASCEND, CLEAN, READS, npus_only

NAMES = ("mac_rx_bad_pkt_num", "mac_rx_fcs_err_pkt_num", "roce_rx_err_pkt_num")
CONTENT = ("roce_verification_err_num",)
"""Ascend DCMI API reference, dcmi_get_netdev_pkt_stats_info."""


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
WRONG_CONTENT = Cause(
    slug="npu-wrong-content",
    title=Words("NPU receives packets that are wrong inside", "NPU 收到内容校验错误的报文"),
    meaning=Words(
        "The link is sound, and the packets were changed before it: a switch or the sending NPU. "
        "Each is dropped and sent again.",
        "链路正常，但报文在到达之前已被改动：交换机或发送端 NPU 有问题。每个报文都会被丢弃并重传。",
    ),
    remedies=(
        Remedy(
            command="hccn_tool -i {npu} -stat -g",
            effect=Words(
                "Read it on the NPUs of this number on all hosts: where several count, what they "
                "have in common is to blame, a switch or the one that sends to them.",
                "在所有主机的同号 NPU 上读取：若多个都在计数，问题在其共同点："
                "某台交换机或向它们发送的 NPU。",
            ),
            precondition=READS,
            who="network team",
        ),
    ),
)


def judge(seen: Seen, npu: Accelerator, _want: Nothing, limits: Limits) -> Verdict:
    """Growth fails; of packets that only their content condemns it warns."""
    found = errors(watched(seen.counters, npu.index), (*NAMES, *CONTENT))
    damaged = found.only(NAMES)
    if not damaged.there:
        return undecidable(f"{npu.label} counts no damaged packets", turn_on="update the driver")
    verdict = settle(damaged, npu, DAMAGED, limits)
    if verdict.status is Status.FAIL or not (wrong := found.only(CONTENT)).there:
        return verdict
    content = settle(wrong, npu, WRONG_CONTENT, limits, advisory=True)
    return content if content.status is Status.WARN else verdict


CHECK = Check(
    id="physical.npu-bad-packets",
    title=Words("NPU receives whole packets", "NPU 无错误报文"),
    subject=Accelerator,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.npu-link-up",),
    causes=(DAMAGED, WRONG_CONTENT),
    explained_by=(
        Explained("npu-optic-power", "same-rail", of=frozenset({DAMAGED.slug})),
        Explained("npu-fec-off", "same-rail", of=frozenset({DAMAGED.slug})),
    ),
    platforms=ASCEND,
    not_applicable=npus_only,
)

"""All NPUs put HCCL's mark into the same traffic class.

Why: HCCL_RDMA_TC 132 is DSCP 33. The NPU's table says into which of its queues that goes: where
one NPU has another, its packets wait behind other traffic or leave with another priority.
Reads: ``hccn_tool -i N -dscp_to_tc -g``. One verdict for the host; hosts are compared.
By hand: ``hccn_tool -i N -dscp_to_tc -g dscp 33`` (root).
Mend: set the odd ones as the others are: ``-dscp_to_tc -s dscp 33 tc T``.
On the switch: DSCP 33 is mapped to priority 4, and PFC is on for it.
Healthy though odd: which class it is, is the site's choice (0 to 3); it must be the same.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, Trait, expects, reads, to_compare, undecidable, warned
from commcheck.expect import ROCE_DSCP
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_port import DSCP_TO_TC
from commcheck.lazy import dataclass
from commcheck.model import Cause, Machine, Remedy, Verdict, Wanted, Words
from commcheck.npu import ASCEND, SWITCH_FIRST, named


@dataclass(frozen=True, slots=True)
class Seen:
    """Every NPU's table of (DSCP, class)."""

    classes: PerNpu[tuple[tuple[int, int], ...]] = reads(DSCP_TO_TC)


@dataclass(frozen=True, slots=True)
class Want:
    """The mark of the fabric."""

    dscp: Wanted[int] = expects(ROCE_DSCP)


MIXED = Cause(
    slug="npu-dscp-mixed",
    title=Words("NPUs sort HCCL's mark differently", "NPU 的 DSCP 映射不一致"),
    meaning=Words(
        "The same mark goes into different traffic classes: some NPUs were set and others not.",
        "同一 DSCP 进入不同的流量类：部分 NPU 已配置，部分未配置。",
    ),
    remedies=(
        Remedy(
            command="hccn_tool -i {npu} -dscp_to_tc -s dscp {dscp} tc TC",
            effect=Words(
                "Sets the class of this mark; TC as on the other NPUs.",
                "设置该 DSCP 的流量类，取值与其他 NPU 相同。",
            ),
            precondition=SWITCH_FIRST,
        ),
    ),
)


def judge(seen: Seen, machine: Machine, want: Want, _limits: Nothing) -> Verdict:
    """One class on the host; hosts are compared with each other."""
    dscp = want.dscp.value
    npus: dict[int | None, list[int]] = {}
    for each in machine.accelerators:
        table = dict(seen.classes.of(each.index))
        npus.setdefault(table.get(dscp), []).append(each.index)
    if None in npus:
        return undecidable(
            f"{named(npus[None])} shows no row of DSCP {dscp}", turn_on="ask for it by hand"
        )
    if len(npus) > 1:
        parts = ", ".join(f"TC {tc} on {named(ids)}" for tc, ids in npus.items())
        odd = min(npus.values(), key=len)
        reason = f"DSCP {dscp} goes to {parts}; want one class"
        return warned(MIXED, reason, measured={"dscp": dscp}, npu=odd[0], dscp=dscp)
    ((tc, alike),) = npus.items()
    return to_compare({"class": tc, "npu": alike[0], "dscp": dscp})


CHECK = Check(
    id="physical.npu-dscp-map",
    title=Words("NPUs sort HCCL's mark alike", "NPU 的 DSCP 映射一致"),
    subject=Machine,
    seen=Seen,
    want=Want,
    judge=judge,
    causes=(MIXED,),
    platforms=ASCEND,
    peers=(Trait("class", Words("HCCL's traffic class", "HCCL 流量类"), MIXED),),
)

"""All NPUs have the same MTU.

Why: Two ends with different MTUs send packets that the other does not take: the connection stands,
and large transfers hang.
Reads: ``hccn_tool -i N -mtu -g``. One verdict for the host; hosts are compared.
By hand: ``hccn_tool -i N -mtu -g`` (root).
Mend: set the odd ones as the others are: ``-mtu -s size N``; the switch carries at least as much.
On the switch: the MTU of the port is not smaller than that of the NPU.
Healthy though odd: 1500 everywhere works; larger ones only save headers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commcheck.check import Check, Nothing, Trait, expects, failed, reads, to_compare
from commcheck.expect import MTU as WANTED_MTU
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_port import MTU
from commcheck.lazy import dataclass
from commcheck.model import Cause, Machine, Remedy, Verdict, Wanted, Words
from commcheck.npu import ASCEND, SWITCH_FIRST, named


@dataclass(frozen=True, slots=True)
class Seen:
    """Every NPU's MTU in bytes."""

    mtu: PerNpu[int] = reads(MTU)


@dataclass(frozen=True, slots=True)
class Want:
    """The MTU that is declared."""

    mtu: Wanted[int] = expects(WANTED_MTU)


MIXED = Cause(
    slug="npu-mtu-mixed",
    title=Words("MTU differs between NPUs", "NPU 的 MTU 不一致"),
    meaning=Words(
        "NPUs of the fleet have different MTUs: large packets of one are not taken by another.",
        "NPU 之间 MTU 不同：一端的大报文另一端无法接收。",
    ),
    remedies=(
        Remedy(
            command="hccn_tool -i {npu} -mtu -s size {size}",
            effect=Words(
                "Sets the MTU: that of the other NPUs.", "设置 MTU，取值与其他 NPU 相同。"
            ),
            precondition=SWITCH_FIRST,
        ),
    ),
)


def judge(seen: Seen, machine: Machine, want: Want, _limits: Nothing) -> Verdict:
    """One value on the host and, where it is declared, that one; hosts are compared."""
    npus: dict[int, list[int]] = {}
    for each in machine.accelerators:
        npus.setdefault(seen.mtu.of(each.index), []).append(each.index)
    declared: int | None = want.mtu.value  # no default on this platform
    if len(npus) > 1:
        parts = ", ".join(f"{mtu} on {named(ids)}" for mtu, ids in sorted(npus.items()))
        size = _most(npus) if declared is None else declared
        odd = next(ids[0] for mtu, ids in npus.items() if mtu != size)
        return failed(MIXED, f"MTU is {parts}; want one value", npu=odd, size=size or "")
    ((mtu, (first, *_)),) = npus.items()
    if declared is not None and mtu != declared:
        reason = f"MTU is {mtu} on all NPUs, want {declared}: {want.mtu.origin}"
        measured = {"mtu_bytes": mtu}
        return failed(MIXED, reason, measured=measured, npu=first, size=declared)
    return to_compare({"mtu_bytes": mtu, "npu": first})


def _most(npus: Mapping[int, Sequence[int]]) -> int | None:
    """The MTU of more than half of the NPUs."""
    total = sum(map(len, npus.values()))
    return next((mtu for mtu, ids in npus.items() if len(ids) * 2 > total), None)


CHECK = Check(
    id="physical.npu-mtu",
    title=Words("NPUs have one MTU", "NPU 的 MTU 一致"),
    subject=Machine,
    seen=Seen,
    want=Want,
    judge=judge,
    causes=(MIXED,),
    platforms=ASCEND,
    peers=(Trait("mtu_bytes", Words("MTU", "MTU"), MIXED),),
)

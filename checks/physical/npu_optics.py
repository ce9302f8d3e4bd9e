"""The NPU's module is there, cool, and receives light on every lane.

Why: One lane with little light makes errors that correction mends for a while, then the link loses
packets or flaps.
Reads: ``hccn_tool -i N -optical -g``. One verdict for each NPU.
By hand: ``hccn_tool -i N -optical -g`` (root): Rx Power below RxPower Low Thres, flags not 0x0.
Mend: clean both ends of the fibre, then replace fibre and module one at a time.
On the switch: transmit power of the same lane at the other end tells fibre from module.
Healthy though odd: the powers are in mW here, and the module prints its own thresholds. A flag
alone, with all powers inside of them, is a warning: it may be of an earlier moment. Passive copper
has no power readings and is not judged.
"""

from __future__ import annotations

from commcheck.check import (
    Check,
    Nothing,
    Unread,
    failed,
    not_applicable,
    passed,
    reads,
    tries,
    warned,
)
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_optical import OPTICAL, NpuOptical
from commcheck.formats.hccn_port import LINK, NpuLink
from commcheck.lazy import dataclass
from commcheck.model import Accelerator, Cause, Remedy, Verdict, Words
from commcheck.npu import ASCEND, CLEAN, DRAINED, npus_only, unused


@dataclass(frozen=True, slots=True)
class Seen:
    """The modules."""

    optical: PerNpu[NpuOptical] = reads(OPTICAL)
    link: PerNpu[NpuLink] | Unread = tries(LINK)


RESEAT = Remedy(
    command="",
    effect=Words("Reseat the module, then replace it.", "重插光模块，仍异常则更换。"),
    precondition=DRAINED,
)

ABSENT = Cause(
    slug="npu-optic-absent",
    title=Words("NPU module does not answer", "NPU 光模块无响应"),
    meaning=Words(
        "The module is not seen, or its management bus is dead: what it does nobody can tell.",
        "光模块不在位或管理总线失效：无法得知其状态。",
    ),
    remedies=(RESEAT,),
)
DARK = Cause(
    slug="npu-optic-power",
    title=Words("Wrong light on an NPU's lane", "NPU 光功率异常"),
    meaning=Words(
        "A lane sends or receives less or more light than its module allows: a dirty connector, a "
        "broken fibre, a dying transmitter.",
        "某通道收发光功率超出模块门限：连接器脏污、光纤损坏或发射器老化。",
    ),
    remedies=(CLEAN,),
)
HOT = Cause(
    slug="npu-optic-hot",
    title=Words("NPU module is too hot", "NPU 光模块过热"),
    meaning=Words(
        "The module is above its own limit and will make errors or shut off.",
        "光模块超过自身温度门限，将产生误码或关断。",
    ),
    remedies=(RESEAT,),
)
FLAGGED = Cause(
    slug="npu-optic-alarm",
    title=Words("NPU module raises a flag", "NPU 光模块告警"),
    meaning=Words(
        "The module flags a lane, while the powers that it prints are within its limits.",
        "光模块对某通道告警，但打印的光功率在门限内。",
    ),
    remedies=(CLEAN,),
)


def judge(seen: Seen, npu: Accelerator, _want: Nothing, _limits: Nothing) -> Verdict:
    """There, then temperature, then each lane's power, then flags alone."""
    if (why := unused(seen.link, npu)) is not None:
        return not_applicable(why)
    optical = seen.optical.of(npu.index)
    if optical.state != "present":
        gone = "is not there" if optical.state == "absent" else "does not answer on its bus"
        return failed(
            ABSENT, f"{npu.label}: its module {gone}, while its link is up", npu=npu.index
        )
    measured: dict[str, object] = {
        "part_number": optical.part_number,
        "temperature_c": optical.temperature_c,
        "rx_mw": [mw for _, mw in optical.rx_mw],
        "tx_mw": [mw for _, mw in optical.tx_mw],
    }
    has = f"{npu.label} has {optical.part_number}"
    heat, most = optical.temperature_c, optical.temperature_high_c
    if heat is not None and most is not None and heat > most:
        reason = f"{has} at {heat:g} C, want at most {most:g}"
        return failed(HOT, reason, measured=measured, npu=npu.index)
    if wrong := _wrong_lanes(optical):
        return failed(DARK, f"{has}: {wrong}", measured=measured, npu=npu.index)
    if optical.flags:
        flag, lane = optical.flags[0]
        reason = f"{has}: {flag} of lane {lane}, while its powers are right"
        return warned(FLAGGED, reason, measured=measured, npu=npu.index)
    if not optical.rx_mw:
        return not_applicable(f"{has}, which has no power readings, as copper")
    lowest = min(mw for _, mw in optical.rx_mw)
    return passed(f"{has}, {lowest:g} mW on its darkest lane", measured=measured)


def _wrong_lanes(optical: NpuOptical) -> str:
    ways = (
        ("receives", optical.rx_mw, optical.rx_limits_mw),
        ("sends", optical.tx_mw, optical.tx_limits_mw),
    )
    return "; ".join(
        f"lane {lane} {verb} {mw:g} mW, want {limits[0]:g} to {limits[1]:g}"
        for verb, lanes, limits in ways
        if limits is not None
        for lane, mw in lanes
        if not limits[0] <= mw <= limits[1]
    )


CHECK = Check(
    id="physical.npu-optics",
    title=Words("NPU modules see light", "NPU 光模块正常"),
    subject=Accelerator,
    seen=Seen,
    judge=judge,
    needs=("physical.npu-link-up",),
    causes=(ABSENT, DARK, HOT, FLAGGED),
    platforms=ASCEND,
    not_applicable=npus_only,
)

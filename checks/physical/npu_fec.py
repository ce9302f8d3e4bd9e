"""The NPU's port corrects errors with RS-FEC.

Why: Optics of 100G and more make bit errors all the time and rely on their correction. Without it
each one is a lost packet; with another one than the switch has, the link does not come up.
Reads: ``hccn_tool -i N -fec -g``. One verdict for each NPU.
By hand: ``hccn_tool -i N -fec -g`` (root).
Mend: the same FEC at the switch port and at the NPU.
On the switch: RS-FEC on the port.
Healthy though odd: ports below 100 Gb/s work without.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, Unread, failed, not_applicable, passed, reads, tries
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_port import FEC, LINK, SPEED, NpuLink
from commcheck.lazy import dataclass
from commcheck.model import Accelerator, Cause, Remedy, Verdict, Words
from commcheck.npu import ASCEND, SWITCH_FIRST, npus_only, unused

NEEDED_FROM_MBITS = 100_000
"""IEEE 802.3: 100GBASE-SR4 and all of PAM4 need RS-FEC."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Modes, and the speed that needs one."""

    fec: PerNpu[str] = reads(FEC)
    speed: PerNpu[int | None] | Unread = tries(SPEED)
    link: PerNpu[NpuLink] | Unread = tries(LINK)


OFF = Cause(
    slug="npu-fec-off",
    title=Words("NPU port has no RS-FEC", "NPU 端口未启用 RS-FEC"),
    meaning=Words(
        "Bit errors of the optics are not corrected: packets are lost.",
        "光链路误码得不到纠正：报文丢失。",
    ),
    remedies=(
        Remedy(
            command="hccn_tool -i {npu} -fec -g",
            effect=Words(
                "Shows the mode. Set RS-FEC at both ends; the link goes down and up.",
                "显示 FEC 模式。两端均配置 RS-FEC；链路会中断一次。",
            ),
            precondition=SWITCH_FIRST,
        ),
    ),
)


def judge(seen: Seen, npu: Accelerator, _want: Nothing, _limits: Nothing) -> Verdict:
    """RS wherever the speed needs it; an unknown speed counts as one that does."""
    if (why := unused(seen.link, npu)) is not None:
        return not_applicable(why)
    mode = seen.fec.of(npu.index)
    speed = None if isinstance(seen.speed, Unread) else dict(seen.speed.values).get(npu.index)
    has = f"{npu.label} has {mode} FEC"
    if mode == "rs":
        return passed(has, measured={"fec": mode})
    if speed is not None and speed < NEEDED_FROM_MBITS:
        return passed(f"{has}, enough at {speed / 1000:g} Gb/s", measured={"fec": mode})
    return failed(OFF, f"{has}, want rs", measured={"fec": mode}, npu=npu.index)


CHECK = Check(
    id="physical.npu-fec",
    title=Words("NPU port has RS-FEC", "NPU 端口 FEC 正确"),
    subject=Accelerator,
    seen=Seen,
    judge=judge,
    needs=("physical.npu-link-up",),
    causes=(OFF,),
    platforms=ASCEND,
    not_applicable=npus_only,
)

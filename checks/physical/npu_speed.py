"""The NPU's port runs at its line rate.

Why: A port that came up at 100 of 200 Gb/s halves what all others get: a ring goes at the pace of
its slowest member.
Reads: ``hccn_tool -i N -speed -g``. One verdict for each NPU.
By hand: ``hccn_tool -i N -speed -g`` (root).
Mend: look at the switch port first, then at the module.
On the switch: a 400GE port for two NPUs is split into two of 200GE.
Healthy though odd: 910A has ports of 100 Gb/s. Without ``commcheck_line_rate_gbits`` a port is
compared with the fastest of its host, so that a host where all are slow is not seen.
"""

from __future__ import annotations

from commcheck.check import (
    Check,
    Nothing,
    Unread,
    expects,
    failed,
    not_applicable,
    passed,
    reads,
    tries,
    undecidable,
)
from commcheck.expect import LINE_RATE_GBITS
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_port import LINK, SPEED, NpuLink
from commcheck.lazy import dataclass
from commcheck.model import Accelerator, Cause, Remedy, Verdict, Wanted, Words
from commcheck.npu import ASCEND, CLEAN, READS, npus_only, unused


@dataclass(frozen=True, slots=True)
class Seen:
    """Speeds in Mb/s; None where the link is down."""

    speed: PerNpu[int | None] = reads(SPEED)
    link: PerNpu[NpuLink] | Unread = tries(LINK)


@dataclass(frozen=True, slots=True)
class Want:
    """The line rate that is declared."""

    line_rate: Wanted[int | None] = expects(LINE_RATE_GBITS)


SLOW = Cause(
    slug="npu-speed-low",
    title=Words("NPU port is too slow", "NPU 端口速率过低"),
    meaning=Words(
        "The port runs below its line rate: the switch port is split wrongly, or the module is "
        "another one.",
        "端口低于应有速率：交换机端口拆分有误，或光模块型号不符。",
    ),
    remedies=(
        Remedy(
            command="hccn_tool -i {npu} -lldp -g",
            effect=Words(
                "Shows the switch port. Have its split and speed looked at.",
                "显示对端交换机端口。请检查其拆分与速率配置。",
            ),
            precondition=READS,
            who="network team",
        ),
        CLEAN,
    ),
)


def judge(seen: Seen, npu: Accelerator, want: Want, _limits: Nothing) -> Verdict:
    """At least what is declared, else what the fastest port of the host has."""
    if (why := unused(seen.link, npu)) is not None:
        return not_applicable(why)
    speed = seen.speed.of(npu.index)
    if speed is None:
        return undecidable(f"{npu.label} tells no speed", turn_on="its link is down: see it first")
    declared = want.line_rate.value
    wanted = max(each or 0 for _, each in seen.speed.values)
    origin = "as the fastest port of this host"
    if declared is not None:
        wanted, origin = 1000 * declared, str(want.line_rate.origin)
    measured = {"speed_gbits": speed / 1000}
    runs = f"{npu.label} runs at {speed / 1000:g} Gb/s"
    if speed < wanted:
        reason = f"{runs}, want {wanted / 1000:g}: {origin}"
        return failed(SLOW, reason, measured=measured, npu=npu.index)
    return passed(runs, measured=measured)


CHECK = Check(
    id="physical.npu-speed",
    title=Words("NPU port at line rate", "NPU 端口速率正确"),
    subject=Accelerator,
    seen=Seen,
    want=Want,
    judge=judge,
    needs=("physical.npu-link-up",),
    causes=(SLOW,),
    platforms=ASCEND,
    not_applicable=npus_only,
)

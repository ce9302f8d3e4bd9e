"""The driver calls every NPU healthy.

Why: An NPU in alarm computes no more, or soon will not: HBM errors, overheating, a lost link. The
job that gets it fails, sometimes after hours.
Reads: ``npu-smi info``, the column Health, and the error code of each chip that is not OK. One
verdict for the host.
By hand: ``npu-smi info``; ``npu-smi info -t health -i NPU -c CHIP`` shows the code: 81078603 is a
network link that is down.
Mend: look the code up in the vendor's list; most need a reset of the chip or its replacement.
Healthy though odd: Warning lets jobs run, so it warns.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, Unread, failed, passed, reads, tries, warned
from commcheck.formats.npu_codes import NPU_CODES, NpuFault
from commcheck.formats.npu_smi import NPU_SMI, NpuChip, NpuSmi
from commcheck.lazy import dataclass
from commcheck.model import Cause, Machine, Remedy, Verdict, Words
from commcheck.npu import ASCEND, READS


@dataclass(frozen=True, slots=True)
class Seen:
    """The NPUs that the driver lists, and what it holds against them."""

    smi: NpuSmi = reads(NPU_SMI)
    codes: tuple[tuple[int, int, NpuFault], ...] | Unread = tries(NPU_CODES)


CODE = Remedy(
    command="npu-smi info -t health -i {npu} -c {chip}",
    effect=Words(
        "Shows the error code and what it means; the vendor's list says what mends it.",
        "显示错误码及其含义；处理办法见厂商故障码手册。",
    ),
    precondition=READS,
)

ALARM = Cause(
    slug="npu-alarm",
    title=Words("NPU in alarm", "NPU 告警"),
    meaning=Words(
        "The driver reports a fault of the chip that jobs do not survive.",
        "驱动报告芯片故障，作业无法在其上继续运行。",
    ),
    remedies=(CODE,),
)
WARNING = Cause(
    slug="npu-warning",
    title=Words("NPU with a warning", "NPU 预警"),
    meaning=Words(
        "The driver reports something about the chip that does not stop jobs yet.",
        "驱动报告芯片存在异常，但暂不影响作业。",
    ),
    remedies=(CODE,),
)


def judge(seen: Seen, _machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """Alarm and Critical fail, Warning and UNKNOWN warn."""
    bad = [chip for chip in seen.smi.chips if chip.health in ("Alarm", "Critical")]
    odd = [chip for chip in seen.smi.chips if chip.health in ("Warning", "UNKNOWN")]
    measured = {"health": {_name(chip): chip.health for chip in (*bad, *odd)}}
    if not bad and not odd:
        return passed(f"all {len(seen.smi.chips)} NPUs are OK")
    say, cause, first = (failed, ALARM, bad[0]) if bad else (warned, WARNING, odd[0])
    codes = () if isinstance(seen.codes, Unread) else seen.codes
    why = {(npu, chip): fault for npu, chip, fault in codes}
    told = ", ".join(
        f"{_name(chip)} is {chip.health}{_why(why.get((chip.npu, chip.chip)))}"
        for chip in (*bad, *odd)
    )
    return say(cause, f"{told}; want OK", measured=measured, npu=first.npu, chip=first.chip)


def _why(fault: NpuFault | None) -> str:
    if fault is None or not fault.code:
        return ""
    return f" ({fault.code}{f': {fault.information}' if fault.information else ''})"


def _name(chip: NpuChip) -> str:
    if chip.physical == chip.npu and not chip.chip:
        return f"NPU {chip.npu}"
    return f"NPU {chip.npu} chip {chip.chip} (npu{chip.physical})"


CHECK = Check(
    id="physical.npu-health",
    title=Words("NPUs are healthy", "NPU 健康状态正常"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    causes=(ALARM, WARNING),
    platforms=ASCEND,
)

"""The CPUs run at full clock when there is work (governor "performance").

Why: NCCL's network threads and the launch of kernels wait for the CPU. A governor that raises the
clock only after a while adds microseconds to every small message and kernel, differently on each
host.
Reads: ``/sys/devices/system/cpu/cpufreq/*/scaling_governor``. One verdict for each host.
By hand: ``cpupower frequency-info``; ``cat /sys/devices/system/cpu/cpufreq/*/scaling_governor |
sort | uniq -c``.
Mend: ``cpupower frequency-set -g performance`` and the distribution's profile (``tuned-adm profile
throughput-performance``), which keeps it over reboots.
Healthy though odd: hosts whose BIOS sets the clocks, and guests, have no governor. "powersave" of
intel_pstate still reaches full clock: it is a warning only.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Check, Nothing, not_applicable, passed, reads, warned
from commcheck.formats.cpu_governor import SYSFS_GOVERNOR
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The governors in use."""

    governors: frozenset[str] = reads(SYSFS_GOVERNOR)


WANTED: Final = "performance"

SET = Remedy(
    command="cpupower frequency-set -g performance",
    effect=Words(
        "Full clock at once, until the next reboot; a tuned profile keeps it. More power is drawn.",
        "立即以最高频率运行，重启后失效；用 tuned 配置可持久。功耗会上升。",
    ),
    precondition=Words("Root; harmless while jobs run.", "需要 root；作业运行时无影响。"),
)

SAVING = Cause(
    slug="cpu-governor-saves",
    title=Words("CPU governor saves power", "CPU 调频策略偏向节能"),
    meaning=Words(
        "The kernel lowers the clocks of CPUs between bursts of work: latency of small messages "
        "and launches grows.",
        "操作系统在负载间隙降低 CPU 频率：小消息与算子下发的延迟增大。",
    ),
    remedies=(SET,),
)


def judge(seen: Seen, _machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """One governor everywhere; a warning else."""
    if not seen.governors:
        return not_applicable("the kernel sets no CPU clocks here (BIOS or a guest)")
    told = ", ".join(sorted(seen.governors))
    measured = {"governors": sorted(seen.governors)}
    if seen.governors != {WANTED}:
        return warned(SAVING, f"CPU governor {told}, want {WANTED}", measured=measured)
    return passed(f"CPU governor {told}", measured=measured)


CHECK = Check(
    id="physical.cpu-governor",
    title=Words("CPU governor is performance", "CPU 调频策略为 performance"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    causes=(SAVING,),
    platforms=GPUS | {"ascend"},
)

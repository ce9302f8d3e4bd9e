"""The driver stays loaded on every GPU between programs (persistence mode).

Why: Without it the driver leaves an idle GPU and starts it anew for every program: seconds at each
start, settings like power limits are lost, and GPUs of one job begin at different times.
Reads: ``nvidia-smi --query-gpu=persistence_mode,...``. One verdict for each host.
By hand: ``nvidia-smi -q | grep 'Persistence Mode'``; ``systemctl status nvidia-persistenced``.
Mend: enable the daemon ``nvidia-persistenced`` (it keeps the mode over reboots), or ``nvidia-smi
-pm 1``.
Healthy though odd: while a job runs, nothing is lost by it; it is a warning only. On hosts whose
driver lives in a container, that container sets it.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, passed, reads, undecidable, warned
from commcheck.formats.nvidia_gpu import NVIDIA_GPU, NvidiaGpu
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Seen:
    """The GPUs."""

    gpus: tuple[NvidiaGpu, ...] = reads(NVIDIA_GPU)


DAEMON = Remedy(
    command="systemctl enable --now nvidia-persistenced",
    effect=Words(
        "Keeps the driver loaded on all GPUs, also after a reboot. Where there is no such unit: "
        "nvidia-smi -pm 1, until the next reboot.",
        "使驱动在所有 GPU 上常驻，重启后仍有效。若无此服务：nvidia-smi -pm 1（重启后失效）。",
    ),
    precondition=Words("Root; harmless while jobs run.", "需要 root；作业运行时无影响。"),
)

OFF = Cause(
    slug="gpu-persistence-off",
    title=Words("Persistence mode is off", "未启用持久模式"),
    meaning=Words(
        "The driver leaves idle GPUs: slow starts, and settings that are lost between jobs.",
        "驱动会离开空闲 GPU：启动变慢，作业之间的设置丢失。",
    ),
    remedies=(DAEMON,),
)


def judge(seen: Seen, _machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """On everywhere; a warning else."""
    gpus = seen.gpus
    measured = {"persistence": {gpu.label: gpu.persistence for gpu in gpus}}
    if off := [gpu.label for gpu in gpus if gpu.persistence is False]:
        reason = f"persistence mode is off on {', '.join(off)}, want it on"
        return warned(OFF, reason, measured=measured)
    if untold := [gpu.label for gpu in gpus if gpu.persistence is None]:
        return undecidable(f"the driver does not tell the persistence mode of {', '.join(untold)}")
    return passed(f"persistence mode is on, {many(len(gpus), 'GPU')}", measured=measured)


CHECK = Check(
    id="physical.gpu-persistence",
    title=Words("GPU persistence mode is on", "GPU 持久模式已启用"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    needs=("physical.gpu-driver",),
    causes=(OFF,),
    platforms=GPUS,
)

"""Every bad row of GPU memory has been replaced, and spare rows are left.

Why: A GPU replaces a bad memory row by a spare one at its next reset. Until then the repair waits;
once no spare row is left, the next error cannot be repaired and the GPU has to go.
Reads: ``nvidia-smi --query-remapped-rows=...``; pages that wait to be retired of older GPUs from
``--query-gpu``; what younger ones repair beside rows from ``nvidia-smi -q``. One verdict for each
host.
By hand: ``nvidia-smi -q -d ROW_REMAPPER`` (older GPUs: ``PAGE_RETIREMENT``).
Mend: pending: drain and reset the GPU, or reboot. Failed: the vendor replaces the GPU (NVIDIA's
RMA criterion).
Healthy though odd: rows that were replaced before are repaired, however many. A pending repair is
a warning: NVIDIA lets jobs run on until the next reset. With MIG instances the driver does not
tell.
"""

from __future__ import annotations

from collections.abc import Mapping

from commcheck.check import (
    Check,
    Nothing,
    Unread,
    failed,
    not_applicable,
    passed,
    reads,
    tries,
    undecidable,
    warned,
)
from commcheck.formats.nvidia_gpu import NVIDIA_GPU, NvidiaGpu
from commcheck.formats.nvidia_recovery import NVIDIA_RECOVERY, RecoveryGpu
from commcheck.formats.nvidia_remap import NVIDIA_REMAP, RemapGpu
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Seen:
    """Rows of GPUs from A100 on, pages of older ones, other repairs of younger ones."""

    rows: tuple[RemapGpu, ...] = reads(NVIDIA_REMAP)
    gpus: tuple[NvidiaGpu, ...] | Unread = tries(NVIDIA_GPU)
    parts: tuple[RecoveryGpu, ...] | Unread = tries(NVIDIA_RECOVERY)


RESET = Remedy(
    command="nvidia-smi -r -i {pci}",
    effect=Words(
        "Resets the GPU and puts the spare row in place. On NVSwitch boards all GPUs are reset "
        "together; a reboot does the same.",
        "复位 GPU 并启用备用行。NVSwitch 主板上所有 GPU 一同复位；重启等效。",
    ),
    precondition=Words(
        "The host is drained and no process holds a GPU (also monitoring).",
        "主机已排空，且无进程占用 GPU（包括监控）。",
    ),
)
REPLACE = Remedy(
    command="nvidia-bug-report.sh",
    effect=Words(
        "Collects what the vendor wants for the exchange of the GPU.",
        "收集更换 GPU 时厂商所需信息。",
    ),
    precondition=Words(
        "Take the host out of the scheduler now; the next error ends a job.",
        "立即将主机移出调度；下一次错误会使作业终止。",
    ),
    who="vendor",
)

FAILED = Cause(
    slug="gpu-row-remap-failed",
    title=Words("GPU memory cannot be repaired", "GPU 显存行重映射失败"),
    meaning=Words(
        "Bad memory could not be replaced: no spare row or channel was left. NVIDIA exchanges such "
        "a GPU.",
        "坏显存无法替换：备用行或通道已耗尽。NVIDIA 会更换此类 GPU。",
    ),
    remedies=(REPLACE,),
)
PENDING = Cause(
    slug="gpu-row-remap-pending",
    title=Words("GPU memory repair waits for a reset", "GPU 显存修复等待复位"),
    meaning=Words(
        "A bad row (page, channel or TPC) was found and is replaced at the next reset; until then "
        "it is only avoided.",
        "发现坏行（或坏页、坏通道、坏 TPC），将在下次复位时替换；在此之前仅被规避。",
    ),
    remedies=(RESET,),
)


def judge(seen: Seen, _machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """A repair that failed, one that waits, and whether anything was told at all."""
    gpus = () if isinstance(seen.gpus, Unread) else seen.gpus
    names = {gpu.pci: gpu.label for gpu in gpus}
    measured = {
        "rows_for_uncorrectable": {_named(row, names): row.uncorrectable for row in seen.rows},
        "rows_for_correctable": {_named(row, names): row.correctable for row in seen.rows},
    }
    parts = () if isinstance(seen.parts, Unread) else seen.parts
    if lost := [row.pci for row in seen.rows if row.failure]:
        told = ", ".join(f"{names.get(pci, pci)} ({pci})" for pci in lost)
        return failed(FAILED, f"no spare row of memory is left: {told}", measured=measured)
    if lost := [gpu.pci for gpu in parts if gpu.unrepairable]:
        told = ", ".join(f"{names.get(pci, pci)} ({pci})" for pci in lost)
        return failed(FAILED, f"the driver calls memory unrepairable: {told}", measured=measured)
    waiting = {row.pci: "" for row in seen.rows if row.pending}
    waiting |= {gpu.pci: "" for gpu in gpus if gpu.retirement_pending}
    waiting |= {gpu.pci: f" {' and '.join(gpu.pending)}" for gpu in parts if gpu.pending}
    if waiting:
        told = ", ".join(f"{names.get(pci, 'GPU')} ({pci}){what}" for pci, what in waiting.items())
        reason = f"a repair waits for a reset: {told}"
        return warned(PENDING, reason, measured=measured, pci=next(iter(waiting)))
    told_of = {row.pci for row in seen.rows if row.failure is not None and row.pending is not None}
    told_of |= {gpu.pci for gpu in gpus if gpu.retirement_pending is not None}
    if not told_of:
        if any(gpu.mig for gpu in gpus):
            return undecidable(
                "with MIG the driver tells nothing of replaced rows",
                turn_on="read it before the instances are made",
            )
        return not_applicable("the GPUs have no spare rows, or the driver tells nothing of them")
    if untold := [gpu.label for gpu in gpus if gpu.pci not in told_of]:
        return undecidable(f"the driver tells nothing of replaced rows of {', '.join(untold)}")
    replaced = sum((row.uncorrectable or 0) + (row.correctable or 0) for row in seen.rows)
    remark = f"; {replaced} rows were replaced before" if replaced else ""
    return passed(
        f"no repair of memory waits on {many(len(told_of), 'GPU')}{remark}", measured=measured
    )


def _named(row: RemapGpu, names: Mapping[str, str]) -> str:
    return names.get(row.pci, row.pci)


CHECK = Check(
    id="physical.gpu-row-remap",
    title=Words("GPU memory is repaired", "GPU 显存行重映射正常"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    needs=("physical.gpu-driver",),
    causes=(FAILED, PENDING),
    platforms=GPUS,
)

"""There is room in ``/dev/shm`` for what processes of a host share.

Why: NCCL's ranks of one host exchange data and control through files there, data loaders their
batches. Where it is full or as small as a container's default of 64 MiB, jobs end with "No space
left on device", or with a bus error.
Reads: ``df -Pk /dev/shm``. One verdict for each host.
By hand: ``df -h /dev/shm``; ``ls -lh /dev/shm`` for what jobs that crashed left (``nccl-*``,
``torch_*``); in the job's container too.
Mend: remove files that no process holds (``fuser -v /dev/shm/*``); ``mount -o remount,size=50%
/dev/shm``; for containers ``--shm-size=1g`` or an emptyDir of medium Memory.
Healthy though odd: jobs in containers have a ``/dev/shm`` of their own: what this session sees is
that of the host, or of the container that it is in. A small one is a warning; a full one fails.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Check, Nothing, failed, limit, passed, reads, warned
from commcheck.formats.shm import DF_SHM, Shm
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """Size and room."""

    shm: Shm = reads(DF_SHM)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a job needs."""

    total_mib: int = limit(
        1024, unit="MiB", source="NCCL user guide, sharing data: --shm-size=1g for containers"
    )
    free_mib: int = limit(
        64, unit="MiB", source="own choice: with less the segments of eight ranks do not fit"
    )


KIB_PER_MIB: Final = 1024
MOUNT: Final = "/dev/shm"  # noqa: S108 - looked at, nothing is written

CLEAN = Remedy(
    command="fuser -v /dev/shm",
    effect=Words(
        "Shows who uses it. Files that nobody holds (nccl-*, torch_*) are left over: remove them.",
        "显示使用者。无进程占用的文件（nccl-*、torch_*）为残留：可删除。",
    ),
    precondition=Words(
        "Only files of no running process; never while a job of the owner runs.",
        "仅删除没有进程占用的文件；所有者的作业运行时不要删除。",
    ),
)
ENLARGE = Remedy(
    command="mount -o remount,size=50% /dev/shm",
    effect=Words(
        "Enlarges it at once, until the next reboot (fstab keeps it). In a container: "
        "--shm-size=1g, or an emptyDir of medium Memory.",
        "立即扩容，重启后失效（写入 fstab 可持久）。容器内用 --shm-size=1g 或内存型 emptyDir。",
    ),
    precondition=Words("Root; the memory is there.", "需要 root；内存充足。"),
)

FULL = Cause(
    slug="shm-full",
    title=Words("Shared memory is full", "共享内存（/dev/shm）已满"),
    meaning=Words(
        "No room is left: mostly files of jobs that crashed. New jobs fail at their start.",
        "空间已耗尽：多为崩溃作业的残留文件。新作业会在启动时失败。",
    ),
    remedies=(CLEAN, ENLARGE),
)
SMALL = Cause(
    slug="shm-small",
    title=Words("Shared memory is small", "共享内存（/dev/shm）过小"),
    meaning=Words(
        "It is smaller than what NVIDIA advises for NCCL: a container's default, mostly.",
        "小于 NVIDIA 对 NCCL 的建议：多为容器默认值。",
    ),
    remedies=(ENLARGE,),
)


def judge(seen: Seen, _machine: Machine, _want: Nothing, limits: Limits) -> Verdict:
    """Room first, then the size."""
    shm = seen.shm
    total, free = shm.total_kib // KIB_PER_MIB, shm.free_kib // KIB_PER_MIB
    measured = {"shm_total_mib": total, "shm_free_mib": free}
    where = MOUNT if shm.mount == MOUNT else f"{MOUNT} (part of {shm.mount})"
    if free < limits.free_mib <= total:
        reason = f"{where} has {free} of {total} MiB free, want {limits.free_mib}"
        return failed(FULL, reason, measured=measured)
    if total < limits.total_mib:
        reason = f"{where} has {total} MiB, want {limits.total_mib} where jobs run"
        return warned(SMALL, reason, measured=measured)
    return passed(f"{where} has {free} of {total} MiB free", measured=measured)


CHECK = Check(
    id="physical.shm-size",
    title=Words("Room in shared memory (/dev/shm)", "共享内存（/dev/shm）充足"),
    subject=Machine,
    seen=Seen,
    limits=Limits,
    judge=judge,
    causes=(FULL, SMALL),
    platforms=GPUS | {"ascend"},
)

"""Processes may lock as much memory as RDMA needs.

Why: Registering a buffer with an HCA locks it in memory. With the usual limit of 64 KiB or 8 MiB
the first real buffer fails: ``ibv_reg_mr`` or ``ibv_create_cq`` with "Cannot allocate memory".
Reads: ``/proc/self/limits`` of the session that commcheck has. One verdict for each host.
By hand: ``ulimit -l`` as the job's user, or in the job's container; of a running process:
``grep locked /proc/PID/limits``.
Mend: ``memlock unlimited`` in ``/etc/security/limits.d``, ``LimitMEMLOCK=infinity`` of the
scheduler's daemon (slurmd, kubelet's runtime), ``--ulimit memlock=-1`` or IPC_LOCK of the
container. Jobs that run keep their old limit: start them anew.
Healthy though odd: jobs may run as another user, under a scheduler or in a container with limits of
their own: what this session has is a hint, so it is a warning.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, passed, reads, warned
from commcheck.formats.proc_limits import PROC_LIMITS, LockedMemory
from commcheck.lazy import dataclass
from commcheck.model import Cause, Machine, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The session's limit."""

    locked: LockedMemory = reads(PROC_LIMITS)


LIMITS_D = Remedy(
    command="ulimit -l",
    effect=Words(
        "Shows the limit where the job runs (its user, its container). Raise it there: "
        "limits.d, LimitMEMLOCK=infinity of the scheduler's daemon, or IPC_LOCK of the container.",
        "在作业实际运行处（用户或容器）查看限制，并在该处放开：limits.d、"
        "调度器守护进程的 LimitMEMLOCK=infinity，或容器的 IPC_LOCK。",
    ),
    precondition=Words(
        "Takes effect for new sessions and jobs only; a daemon must be restarted, with no job.",
        "仅对新会话与新作业生效；守护进程需在无作业时重启。",
    ),
)

LIMITED = Cause(
    slug="memlock-limited",
    title=Words("Locked memory is limited", "可锁定内存受限"),
    meaning=Words(
        "Processes of this user cannot register large buffers with an HCA; jobs with the same "
        "limit fail at start.",
        "该用户的进程无法向 HCA 注册大块内存；受同样限制的作业会在启动时失败。",
    ),
    remedies=(LIMITS_D,),
)


def judge(seen: Seen, _machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """The soft limit is what a process has; it may raise it up to the hard one."""
    soft, hard = seen.locked.soft_bytes, seen.locked.hard_bytes
    measured = {"memlock_soft_bytes": soft, "memlock_hard_bytes": hard}
    if soft is None:
        return passed("this session may lock memory without limit", measured=measured)
    most = "unlimited" if hard is None else f"{hard} bytes"
    reason = f"this session may lock {soft} bytes (at most {most}), want unlimited for jobs"
    return warned(LIMITED, reason, measured=measured)


CHECK = Check(
    id="physical.rdma-memlock",
    title=Words("Memory can be locked for RDMA", "RDMA 可锁定内存不受限"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    causes=(LIMITED,),
    platforms=frozenset({"gpu-roce", "gpu-ib", "gpu-efa"}),
)

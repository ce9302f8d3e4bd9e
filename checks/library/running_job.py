"""The ranks that a job started on this host still run, each once, none of them stopped.

Why: A rank that ended or is stopped hangs all others inside their next collective, until a watchdog
ends them, ten minutes or more later. A process left over from an earlier attempt holds its GPU.
Reads: which processes hold ``/dev/nvidia-uvm`` or ``/dev/davinciN``, and of their environment RANK,
LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as launchers set them; the
state of each process. Dumps of PyTorch's flight recorder that you have: ``commcheck analyze hang
FILE...`` names the first collective in which ranks went apart, and who is missing.
By hand: ``nvidia-smi --query-compute-apps=pid --format=csv`` or ``ls -l /proc/*/fd``, then
``ps -o pid,stat,lstart,cmd -p PID``: T is stopped.
Mend: find out why the rank ended before the job is started again: ``dmesg -T`` (out of memory,
Xid), its own log. The dumps are written where TORCH_FR_BUFFER_SIZE (older:
TORCH_NCCL_TRACE_BUFFER_SIZE) is above 0.

What the rules are: JOB-001 a rank is gone; JOB-002 a rank is there twice; JOB-003 a rank is
stopped; FR-001 to FR-009, on dumps: a dump is missing, a rank never called the collective, ranks
called different ones, with different sizes, all are inside one, some GPUs have not reached it; a
rank never sent or received, ranks wait for each other's transfer.
Healthy though odd: many processes with one rank's variables: its data loaders.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, Unread, not_applicable, tries, undecidable
from commcheck.lazy import dataclass
from commcheck.model import Machine, Verdict
from commcheck.nccl.flight_p2p import EACH_WAITS, INSIDE, PEER_MISSING
from commcheck.nccl.flight_rules import DIFFERENT, NEVER_CALLED, NOT_REACHED, SIZES, STUCK
from commcheck.nccl.processes import HIDDEN, SEE_ALL, USERS, Users
from commcheck.nccl.running import ID, RANK_GONE, RANK_STOPPED, RANK_TWICE, TITLE
from commcheck.nccl.running import judge as judge_users


@dataclass(frozen=True, slots=True)
class Seen:
    """The processes that use accelerators."""

    users: Users | Unread = tries(USERS)


def judge(
    seen: Seen, _machine: Machine, _want: Nothing, _limits: Nothing
) -> Verdict | tuple[Verdict, ...]:
    """Nothing to say where no job runs."""
    users = seen.users
    if isinstance(users, Unread):
        reason = f"which processes use the accelerators is not known: {users.reason}"
        return undecidable(reason, turn_on=users.remedy)
    if users.processes:
        return judge_users(users)
    if users.hidden:
        return undecidable(HIDDEN, turn_on=SEE_ALL)
    return not_applicable("no process uses an accelerator")


CHECK = Check(
    id=ID,
    title=TITLE,
    subject=Machine,
    seen=Seen,
    judge=judge,
    causes=(
        RANK_GONE,
        RANK_TWICE,
        RANK_STOPPED,
        NEVER_CALLED,
        DIFFERENT,
        SIZES,
        STUCK,
        NOT_REACHED,
        PEER_MISSING,
        EACH_WAITS,
        INSIDE,
    ),
)

"""All ranks of the running job answer NCCL's RAS service, report no error, and go on.

Why: NCCL 2.24 and newer watch over themselves: every process knows which others are alive and how
many collectives each rank has launched. The first question to a job that hangs, and it costs the
job nothing.
Asked only of hosts with ``commcheck_ras: true``: one host of a job answers for all of it, and every
answer makes all of its processes talk. Set it for one host of each job.
Reads: what the service on port 28028 of localhost answers to "verbose status", which ``curl`` sends
when the visit begins and when it ends; with ``window_s`` that many seconds apart. It
only asks for the status: never CONTROL, never DIAGNOSTICS.
By hand: ``ncclras -v``, or ``printf 'verbose status\\n' | nc -w 12 localhost 28028``. In a pod:
``kubectl exec POD -- ncclras -v``: the port lives in the job's network namespace. Saved reports:
``commcheck analyze hang FILE...``, several of one job in the order of their times.
Mend: a dead process: its host, ``dmesg -T``. A rank behind: ``py-spy dump`` of its process; the
others only wait. All alike and nothing moves: layer 1.

What the rules are: RAS-001 nobody answers; RAS-002 a dead process; RAS-003 one that is silent;
RAS-004 an error; RAS-005 ranks behind; RAS-006 states that differ; RAS-007 no new collective;
RAS-008 slow answers; RAS-009 fewer ranks than the job has; RAS-011 it runs. That the port is open
to others, RAS-010, ``library.env`` says.
Healthy though odd: counts that differ by a few between ranks of a busy job; counts that stand
still under CUDA graphs, in pipelines of point-to-point transfers, and during a checkpoint.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from commcheck.check import (
    Check,
    Key,
    Unread,
    Watched,
    expects,
    limit,
    may_watch,
    not_applicable,
    tries,
    undecidable,
)
from commcheck.command import whole_number
from commcheck.expect import yes_or_no
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Machine, Verdict, Wanted
from commcheck.nccl.processes import USERS, Users, jobs, ranks
from commcheck.nccl.ras import RAS, Report
from commcheck.nccl.ras_rules import (
    BEHIND,
    DEAD,
    ERROR,
    GONE,
    ID,
    NO_PROGRESS,
    SLOW,
    STATES,
    TITLE,
    Poll,
)
from commcheck.nccl.ras_rules import judge as judge_polls


@dataclass(frozen=True, slots=True)
class Seen:
    """The service's answers at both ends of the visit, and whose job it is."""

    reports: Watched[Report] | Unread = may_watch(RAS)
    users: Users | Unread = tries(USERS)


ASKED: Final = Key(
    name="commcheck_ras",
    read=yes_or_no,
    defaults={"": False},
    source="a gather concerns the whole job: one host of it is enough",
    meaning="ask NCCL's RAS service on this host",
)


@dataclass(frozen=True, slots=True)
class Want:
    """Whether the host is asked at all."""

    asked: Wanted[bool] = expects(ASKED)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to look."""

    window_s: float = limit(
        0.0, unit="s between the two answers", source="a visit's own length; 60 tells a hang"
    )


def judge(
    seen: Seen, _machine: Machine, _want: Want, _limits: Limits
) -> Verdict | tuple[Verdict, ...]:
    """Where no job runs nobody can answer."""
    users, reports = seen.users, seen.reports
    if isinstance(reports, Unread):
        if isinstance(users, Users) and not users.processes and not users.hidden:
            return not_applicable("no process uses an accelerator")
        reason = f"the job's RAS service was not asked: {reports.reason}"
        return replace(undecidable(reason, turn_on=reports.remedy), rule="RAS-001")
    visit = reports.visit
    return judge_polls([Poll(visit.first, 0.0), Poll(visit.last, visit.seconds)], _world(users))


def _world(users: Users | Unread) -> int | None:
    """Ranks that the one job of the host should have."""
    if isinstance(users, Unread):
        return None
    told = {rank.get("WORLD_SIZE") for job in jobs(ranks(users)).values() for rank in job}
    size = next(iter(told)) if len(told) == 1 else None
    return whole_number(size, 7)


CHECK = Check(
    id=ID,
    title=TITLE,
    subject=Machine,
    seen=Seen,
    want=Want,
    limits=Limits,
    opt_in=ASKED,
    judge=judge,
    causes=(DEAD, GONE, ERROR, BEHIND, STATES, NO_PROGRESS, SLOW),
    platforms=GPUS,
)

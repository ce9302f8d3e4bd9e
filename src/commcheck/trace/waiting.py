"""Do ranks wait for a late one? Told by when their collectives begin, or by a table of steps."""

from __future__ import annotations

from statistics import median
from typing import Final

from commcheck.lazy import dataclass
from commcheck.trace import causes
from commcheck.trace.facts import JobFacts, RankFacts, Skew
from commcheck.trace.limits import Limits
from commcheck.trace.rungs import Rung, Shares, pct, percent

_ALONE: Final = "of one rank alone nothing tells waiting for a late one"
_UNTOLD: Final = "whether the ranks wait for a late one is not told"
_STAGES: Final = "in what pipeline stages do together they also wait for each other"


def straggler(skew: Skew, step_ns: float, limits: Limits) -> int | None:
    """The rank (its place in ``skew.ranks``) that all others wait for, or None.

    The latest over a step, by more than ``late_share`` of it; in the mean by more than ``late_us``;
    and with the least time in its collectives, since who is waited for waits for nobody.
    """
    latest = max(range(len(skew.ranks)), key=lambda number: skew.late_step_ns[number])
    is_late = (
        skew.late_ns[latest] > limits.late_us * 1000
        and skew.late_step_ns[latest] > limits.late_share * step_ns
        and skew.comm_ns[latest] <= skew.mates_ns[latest]
    )
    return latest if is_late else None


@dataclass(frozen=True, slots=True)
class Waiting:
    """What ranks wait for each other: the straggler's rung, and whether that is most of the time.

    ``against``: what to say against any other cause, where they wait and for no rank in
    particular, or where nothing tells whether they do.
    """

    rungs: tuple[Rung, ...] = ()
    explains: bool = False
    against: str = ""


def waiting_of(job: JobFacts, shares: Shares, limits: Limits) -> Waiting:
    """Do the ranks wait for a late one, or for each other?"""
    if job.world == 1:
        return Waiting()
    if len(job.ranks) == 1:
        return Waiting(against=_alone(job.ranks[0], limits))
    if all(rank.layout == "table" for rank in job.ranks):
        return _by_table(job, shares, limits)
    crossed = _STAGES if any(rank.pipes for rank in job.ranks) else ""
    if job.skew is None:
        return Waiting(against=crossed or _UNTOLD)
    step_ns = median(rank.median_ns for rank in job.ranks)
    comm = median(rank.share("comm_ns") or 0.0 for rank in job.ranks)
    waited = job.skew.step_ns / step_ns
    is_much = waited > limits.skew_share * comm
    mutual = crossed
    if is_much:
        mutual = f"the ranks wait for each other by turns, {pct(min(1.0, waited))} of the step"
    seen = len(job.ranks)
    unseen = f"of {job.world} ranks {seen} are seen: " if (job.world or 0) > seen else ""
    place = straggler(job.skew, step_ns, limits)
    if place is None:
        others = f"{unseen}they may wait for one of the others" if unseen else ""
        return Waiting(against=mutual or others)
    rank, late = job.ranks[place], job.skew.late_step_ns[place]
    own = late / max(1, job.skew.step_ns)
    if own < limits.late_own:
        return Waiting(against=mutual)
    against = []
    if not is_much:
        against.append(f"waiting is only {pct(waited)} of the step, communication {pct(comm)}")
    computing = [other.share("compute_ns") or 0.0 for other in job.ranks if other is not rank]
    if max(computing) >= (rank.share("compute_ns") or 0.0):
        against.append("it computes no longer than the others: look at its host and input first")
    if unseen:
        against.append(f"{unseen}another may be later")
    rung = Rung(
        causes.STRAGGLER,
        is_much and shares.whole + shares.tensor > limits.exposed_fail,
        f"{rank.name} starts its collectives {late / 1e6:.2f} ms late per step of "
        f"{step_ns / 1e6:.2f} ms, {job.skew.late_ns[place] / 1e3:.0f} us each (limits "
        f"{pct(limits.late_share)} and {limits.late_us:.0f} us), and waits least in them",
        "certain" if is_much and not against else "likely",
        tuple(against),
        {
            "late_ms_per_step": round(late / 1e6, 3),
            "late_us_mean": round(job.skew.late_ns[place] / 1e3, 1),
            "waiting_percent_of_step": percent(waited),
        },
        tuple(name for name in (rank.name, rank.host) if name),
    )
    return Waiting((rung,), explains=is_much)


def _alone(rank: RankFacts, limits: Limits) -> str:
    """What is said of one rank. HCCL itself may tell how long it waits for its peers; that it does
    not proves nothing, since not every task of an operator is recorded."""
    waited = (rank.hccl.waited if rank.hccl else None) or 0.0
    if waited <= limits.skew_share:
        return _ALONE
    return f"of HCCL's own time {pct(waited)} waits for the peer: give the traces of all ranks"


def _by_table(job: JobFacts, shares: Shares, limits: Limits) -> Waiting:
    """The same where only sums of a step are told, one row a rank.

    All leave a step together, and who comes late to its collectives waits least in them: it
    communicates for less of the step than the others, and does something else for more of it.
    """
    if any(rank.share("bubble_ns") for rank in job.ranks):
        return Waiting(against=f"{_UNTOLD}: pipeline stages differ by themselves")
    least = min(job.ranks, key=lambda rank: rank.share("comm_ns") or 0.0)
    most = max(job.ranks, key=lambda rank: rank.share("comm_ns") or 0.0)

    def more(of: str) -> float:
        return (least.share(of) or 0.0) - (most.share(of) or 0.0)

    waited = -more("comm_ns")
    late = [
        rank
        for rank in job.ranks
        if (rank.share("comm_ns") or 0.0) <= (least.share("comm_ns") or 0.0) + limits.uneven
    ]
    does = max(("compute_ns", "idle_ns"), key=more)
    if min(waited, more(does)) <= limits.uneven or 2 * len(late) > len(job.ranks):
        return Waiting(against=_UNTOLD)
    is_much = waited > limits.skew_share * median(
        rank.share("comm_ns") or 0.0 for rank in job.ranks
    )
    against = ["when a collective begins is not in a table of steps"]
    if does == "idle_ns":
        against.append("it computes no longer than the others: look at its host and input first")
    others = f" and {len(late) - 1} more" if len(late) > 1 else ""
    rung = Rung(
        causes.STRAGGLER,
        is_much and shares.whole + shares.tensor > limits.exposed_fail,
        f"{least.name}{others} communicates for only {pct(least.share('comm_ns') or 0.0)} of the "
        f"step, {most.name} for {pct(most.share('comm_ns') or 0.0)} (limit {pct(limits.uneven)} "
        f"apart): it {'is idle' if does == 'idle_ns' else 'computes'} for "
        f"{pct(least.share(does) or 0.0)}, {most.name} for {pct(most.share(does) or 0.0)}",
        "likely",
        tuple(against),
        {
            "waiting_percent_of_step": percent(waited),
            "idle_percent_of_step": percent(least.share("idle_ns") or 0.0),
        },
        tuple(dict.fromkeys(name for rank in late for name in (rank.name, rank.host) if name)),
    )
    return Waiting((rung,), explains=is_much, against=_UNTOLD)

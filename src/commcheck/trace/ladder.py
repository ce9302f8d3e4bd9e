"""From the facts of a job to verdicts: which rung of the ladder, how sure, what speaks against it.

The order is that of blame: a late rank makes communication look slow, a slow host makes it look
exposed, so that these are ruled out first; what they explain is not said again.
"""

from __future__ import annotations

from dataclasses import replace

from commcheck.check import failed, not_applicable, passed, undecidable, warned
from commcheck.model import Kind, Status, Verdict
from commcheck.trace import causes
from commcheck.trace.facts import JobFacts, RankFacts
from commcheck.trace.limits import Limits
from commcheck.trace.rungs import (
    Known,
    Rung,
    Shares,
    bubble_rung,
    exposed_rung,
    gather_rung,
    idle_rung,
    latency_rung,
    launch_rung,
    pct,
    percent,
    serial_rung,
    tensor_rung,
    wire_rung,
)
from commcheck.trace.waiting import waiting_of


def judge(job: JobFacts, limits: Limits, known: Known) -> tuple[Verdict, ...]:
    """Every verdict on a job, the one to blame first; a single pass where there is none."""
    silent = _silence(job)
    if silent is not None:
        waiting = (*launch_rung(job, limits, 0.0), *idle_rung(job, limits))
        return (*(_verdict(rung, job) for rung in waiting), silent)
    shares = _shares(job)
    rungs = _rungs(job, shares, limits, known)
    if not rungs:
        return (_pass(shares, limits),)
    return tuple(_verdict(rung, job) for rung in rungs)


def silent_ranks(job: JobFacts) -> tuple[RankFacts, ...]:
    """Ranks without any communication in a job where others have some."""
    silent = tuple(rank for rank in job.ranks if not _talks(rank))
    return silent if len(silent) < len(job.ranks) else ()


def _talks(rank: RankFacts) -> bool:
    return any(step.comm_kernels or step.comm_ns for step in rank.steps)


def _silence(job: JobFacts) -> Verdict | None:
    """What is said of a job without any communication; None where there is some."""
    if any(_talks(rank) for rank in job.ranks):
        return None
    if job.world == 1:
        return not_applicable("one rank: nothing to communicate with, nothing to judge")
    if job.world is None:
        return undecidable(
            "no communication kernel in the trace, and nothing tells how many ranks the job has",
            turn_on="give the traces of all ranks",
        )
    called = sum(rank.records for rank in job.ranks)
    though = f", though the host calls {called:,} collectives" if called else ""
    reason = (
        f"{job.world} ranks and not one communication kernel in the trace{though}: it proves "
        "nothing; profile whole steps with ProfilerActivity.CUDA, or name your library's kernels"
    )
    return Verdict(status=Status.ERROR, kind=Kind.CHECK, error="NoCommunication", reason=reason)


def _shares(job: JobFacts) -> Shares:
    worst = max(job.ranks, key=lambda rank: rank.share("exposed_judged_ns") or 0.0)
    waits = [wait for rank in job.ranks if (wait := rank.share("host_wait_ns")) is not None]
    return Shares(
        rank=worst,
        exposed=worst.share("exposed_judged_ns") or 0.0,
        comm=worst.share("comm_ns") or 0.0,
        overlap=worst.overlap,
        host_wait=max(waits, default=None),
        bubble=max(rank.share("bubble_ns") or 0.0 for rank in job.ranks),
    )


def _rungs(job: JobFacts, shares: Shares, limits: Limits, known: Known) -> list[Rung]:
    waiting = waiting_of(job, shares, limits)
    launch = launch_rung(job, limits, shares.exposed)
    rungs = [*waiting.rungs, *launch]
    bubble = bubble_rung(shares, limits)
    wire = wire_rung(job, shares, limits, known)
    if waiting.explains or (launch and (shares.host_wait or 0.0) >= shares.exposed):
        # The communication only shows what the late rank, or the slow host, does to it.
        return [*rungs, *bubble]
    rungs += idle_rung(job, limits)
    if shares.exposed <= limits.exposed_warn:
        return [*rungs, *bubble, *wire]
    first = (
        gather_rung(job, shares, limits)
        or tensor_rung(shares, limits)
        or latency_rung(shares, limits, known)
        or serial_rung(shares, limits)
        or ([] if wire else exposed_rung(shares, limits))
    )
    if waiting.against:
        first = [
            replace(rung, sure="likely", against=(*rung.against, waiting.against)) for rung in first
        ]
    return [*rungs, *first, *wire, *bubble]


def _pass(shares: Shares, limits: Limits) -> Verdict:
    hidden = "" if shares.overlap is None else f", {pct(shares.overlap)} of it overlaps"
    return passed(
        f"{shares.rank.name}, the most exposed: communication {pct(shares.comm)} of the step"
        f"{hidden}; exposed {pct(shares.exposed)} (limit {pct(limits.exposed_warn)})",
        measured={
            "exposed_percent_of_step": percent(shares.exposed),
            "communication_percent_of_step": percent(shares.comm),
        },
    )


def _verdict(rung: Rung, job: JobFacts) -> Verdict:
    against = f"; against it: {'; '.join(rung.against)}" if rung.against else ""
    make = failed if rung.is_fail else warned
    verdict = make(
        rung.cause,
        f"{rung.what}; {rung.sure}{against}",
        measured={**rung.measured, "sure": rung.sure},
    )
    frameworks = {rank.framework for rank in job.ranks}
    remedies = causes.remedies_for(
        rung.cause,
        next(iter(frameworks)) if len(frameworks) == 1 else "",
        is_npu=any(rank.is_npu for rank in job.ranks),
    )
    return replace(verdict, remedies=remedies, hosts=rung.hosts)

"""From the facts of a job to verdicts: which rung of the ladder, how sure, what speaks against it.

The order is that of blame: a late rank makes communication look slow, a slow host makes it look
exposed, so that these are ruled out first; what they explain is not said again.
"""

from __future__ import annotations

from dataclasses import replace

from commcheck.check import failed, not_applicable, passed, undecidable, warned
from commcheck.model import Kind, Status, Verdict
from commcheck.trace.facts import JobFacts, RankFacts, most_exposed
from commcheck.trace.host import host_rungs, idle_rung
from commcheck.trace.limits import Limits
from commcheck.trace.links import link_rung
from commcheck.trace.parallel import bubble_rung, of_role, role_rungs, tensor_rung, untold
from commcheck.trace.remedies import remedies_for
from commcheck.trace.roles import Role
from commcheck.trace.rungs import (
    Known,
    Rung,
    Shares,
    exposed_rung,
    gather_rung,
    latency_rung,
    pct,
    percent,
    serial_rung,
)
from commcheck.trace.waiting import waiting_of
from commcheck.trace.wire import wire_given, wire_rung


def judge(job: JobFacts, limits: Limits, known: Known) -> tuple[Verdict, ...]:
    """Every verdict on a job, the one to blame first; a single pass where there is none."""
    silent = _silence(job)
    if silent is not None:
        waiting = (*host_rungs(job, limits, 0.0), *idle_rung(job, limits))
        return (*(_verdict(rung, job) for rung in waiting), silent)
    shares = _shares(job)
    verdicts = [_verdict(rung, job) for rung in _rungs(job, shares, limits, known)]
    unknown = untold(job, limits)
    if unknown is not None:
        verdicts.append(unknown)
    return tuple(verdicts) or (_pass(shares, limits),)


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
    device = "NPU" if _common(job, "accelerator") == "npu" else "CUDA"
    reason = (
        f"{job.world} ranks and not one communication kernel in the trace{though}: it proves "
        f"nothing; profile whole steps with ProfilerActivity.{device}, or name your library's "
        "kernels"
    )
    return Verdict(status=Status.ERROR, kind=Kind.CHECK, error="NoCommunication", reason=reason)


def _shares(job: JobFacts) -> Shares:
    worst = most_exposed(job.ranks)
    exposed = worst.share("exposed_judged_ns") or 0.0
    return Shares(
        rank=worst,
        exposed=exposed,
        whole=exposed,
        tensor=worst.share("exposed_tensor_ns") or 0.0,
        comm=worst.share("comm_ns") or 0.0,
        overlap=worst.overlap,
        apart="",
        unfed=worst.share("exposed_unfed_ns") or 0.0,
    )


def _rungs(job: JobFacts, shares: Shares, limits: Limits, known: Known) -> list[Rung]:
    waiting = waiting_of(job, shares, limits)
    own = shares.whole - shares.unfed
    # What the others expose while they wait for a late rank speaks for its host, not against it.
    host = host_rungs(job, limits, 0.0 if waiting.explains else own)
    rungs = [*waiting.rungs, *host]
    bubble = bubble_rung(job, limits)
    if waiting.explains:
        # The communication only shows what the late rank does to it.
        return [*rungs, *bubble]
    rungs += idle_rung(job, limits)
    first = tensor_rung(job, limits)
    wire = wire_rung(job, shares, limits, known)
    if shares.whole > limits.exposed_warn:
        if host and own <= limits.exposed_warn:
            # What is exposed would not be, had the host launched in time.
            wire = []
        else:
            first += _exposed(job, shares, limits, known, is_slow=bool(wire))
    if waiting.against:
        first = [
            replace(rung, sure="likely", against=(*rung.against, waiting.against)) for rung in first
        ]
    # A wire that was measured to give more lies below: no setting mends it.
    below = [rung for rung in wire if rung.sure == "certain"]
    rest = [rung for rung in wire if rung not in below]
    return [*rungs, *below, *first, *rest, *link_rung(job, limits), *bubble]


def _exposed(
    job: JobFacts, shares: Shares, limits: Limits, known: Known, *, is_slow: bool
) -> list[Rung]:
    """What is exposed, each kind of groups by its own limit; all of it where none is alone."""
    rungs = role_rungs(shares, limits)
    rest = of_role(shares, Role.OTHER)
    if rest.exposed <= limits.exposed_warn:
        if rungs:
            return rungs
        rest = shares
    return rungs + (
        gather_rung(job, rest, limits)
        or latency_rung(rest, limits, known)
        or serial_rung(rest, limits, wire_given(job, limits, known))
        or ([] if is_slow else exposed_rung(rest, limits))
    )


def _pass(shares: Shares, limits: Limits) -> Verdict:
    hidden = "" if shares.overlap is None else f", {pct(shares.overlap)} of it overlaps"
    return passed(
        f"{shares.rank.name}, the most exposed: communication {pct(shares.comm)} of the step"
        f"{hidden}; exposed {pct(shares.whole + shares.tensor)} (limit {pct(limits.exposed_warn)})",
        measured={
            "exposed_percent_of_step": percent(shares.whole + shares.tensor),
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
    remedies = remedies_for(rung.cause, _common(job, "framework"), _common(job, "accelerator"))
    return replace(verdict, remedies=remedies, hosts=rung.hosts)


def _common(job: JobFacts, of: str) -> str:
    """What all ranks tell alike, else ""."""
    told = {str(getattr(rank, of)) for rank in job.ranks}
    return told.pop() if len(told) == 1 else ""

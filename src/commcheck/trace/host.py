"""The rungs of the host: the device waits for its input, for a pause to end, or for launches."""

from __future__ import annotations

from statistics import median

from commcheck.trace import causes
from commcheck.trace.facts import JobFacts, RankFacts
from commcheck.trace.limits import Limits
from commcheck.trace.rungs import Rung, pct, percent


def host_rungs(job: JobFacts, limits: Limits, exposed: float) -> list[Rung]:
    """Does the device of any rank wait for its host, and for what?

    ``exposed``: share of the step with communication exposed for other reasons.
    """
    wait, rank = max(((_waits(rank), rank) for rank in job.ranks), key=lambda each: each[0])
    if wait <= limits.host_wait_warn:
        return []
    fed, paused = rank.share("input_ns") or 0.0, rank.share("pause_ns") or 0.0
    launched = (rank.share("host_wait_ns") or 0.0) - paused
    limit = f"(limit {pct(limits.host_wait_warn)})"
    longest = max(step.longest_pause_ns for step in rank.steps) / 1e6
    parts = (
        (
            fed,
            causes.INPUT_BOUND,
            f"the device idles for {pct(fed)} of the step {limit} while its host waits for the "
            "next batch",
            {"input_wait_percent_of_step": percent(fed)},
        ),
        (
            paused,
            causes.HOST_PAUSE,
            f"the compute stream waits for the host for {pct(paused)} of the step {limit} in a "
            f"few long gaps, up to {longest:.2f} ms",
            {"host_pause_percent_of_step": percent(paused), "longest_pause_ms": round(longest, 3)},
        ),
        (
            launched,
            causes.LAUNCH_BOUND,
            f"the compute stream waits for the host's launches for {pct(launched)} of the step "
            f"{limit}",
            {"host_wait_percent_of_step": percent(launched)},
        ),
    )
    # Where none alone is too much, the largest is what to begin with.
    over = [part for part in parts if part[0] > limits.host_wait_warn]
    larger = f"exposed communication is larger: {pct(exposed)} of the step"
    others = [_waits(other) for other in job.ranks if other is not rank]
    usual = median(others) if others else wait
    is_alone = usual <= limits.host_wait_warn
    rest = f"; the other ranks only for {pct(usual)}" if is_alone else ""
    rungs = []
    for share, cause, what, measured in over or [max(parts, key=lambda part: part[0])]:
        whole = f", {pct(wait)} with all that its host lets wait" if share < 0.99 * wait else ""
        against, sure = [larger] if exposed > wait else [], "certain"
        talks = rank.share("host_comm_ns") or 0.0
        if cause is causes.HOST_PAUSE and 2 * talks > share:
            against.append(
                f"for {pct(talks)} of the step its host is inside a collective of its own (gloo), "
                "where it may wait for another rank"
            )
            sure = "likely"
        rungs.append(
            Rung(
                cause,
                wait > limits.host_wait_fail,
                f"{rank.name}: {what}{whole}: not communication{rest}",
                sure,
                tuple(against),
                measured,
                tuple(name for name in (rank.name, rank.host) if name) if is_alone else (),
            )
        )
    return rungs


def idle_rung(job: JobFacts, limits: Limits) -> list[Rung]:
    """Is the device idle, where nothing tells whether it waits for launches?"""
    # What computes on a host alone leaves gaps between its operators.
    untold = [
        rank for rank in job.ranks if rank.layout != "cpu" and rank.share("host_wait_ns") is None
    ]
    idle, rank = max(
        ((_idles(rank, limits), rank) for rank in untold),
        key=lambda each: each[0],
        default=(0.0, job.ranks[0]),
    )
    if idle <= limits.idle:
        return []
    return [
        Rung(
            causes.IDLE,
            False,
            f"{rank.name} neither computes nor communicates for {pct(idle)} of the step (limit "
            f"{pct(limits.idle)})",
            "likely",
            ("whether it waits for its host or copies memory is not told",),
            {"idle_percent_of_step": percent(idle)},
        )
    ]


def _idles(rank: RankFacts, limits: Limits) -> float:
    """The share of the step that is idle, without what a rung of its own tells."""
    idle, fed = rank.share("idle_ns") or 0.0, rank.share("input_ns") or 0.0
    return idle - fed if fed > limits.host_wait_warn else idle


def _waits(rank: RankFacts) -> float:
    return (rank.share("host_wait_ns") or 0.0) + (rank.share("input_ns") or 0.0)

"""The rungs of the ladder: each asks one question of the facts, and says what speaks against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from statistics import median
from typing import Final

from commcheck.lazy import dataclass
from commcheck.model import Cause
from commcheck.trace import causes
from commcheck.trace.facts import JobFacts, Moved, RankFacts
from commcheck.trace.limits import Limits
from commcheck.trace.roles import Role, role_of_call

_TINY_ENOUGH: Final = 5
"""So many collectives below 64 kB give a mean that is called alpha."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known from elsewhere: a sweep's busbw in GB/s, and its latency in us.

    ``busbw_gbytes``: by collective, among all ranks of the job.
    """

    busbw_gbytes: Mapping[str, float] = field(default_factory=dict)
    alpha_us: float | None = None


@dataclass(frozen=True, slots=True)
class Rung:
    """A finding before it becomes a verdict."""

    cause: Cause
    is_fail: bool
    what: str
    sure: str  # "certain" or "likely"
    against: tuple[str, ...]
    measured: Mapping[str, object] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of the rank that is exposed most, medians over its steps.

    ``exposed``, ``comm`` and ``overlap``: of all, or of the groups that a rung asks about.
    """

    rank: RankFacts
    exposed: float
    whole: float  # exposed, of all that could hide
    tensor: float  # exposed by tensor-parallel groups alone
    comm: float
    overlap: float | None
    apart: str  # groups that are left out of ``comm``, as words
    unfed: float  # of exposed: beneath it a kernel would run, had the host launched it in time


def gather_rung(job: JobFacts, shares: Shares, limits: Limits) -> list[Rung]:
    """ZeRO-3 and FSDP: does the forward pass wait for its weights?"""
    found = []
    for rank in job.ranks:
        parts = [
            (step.gather_exposed_ns / step.forward_ns, step.gather_ns / step.forward_ns)
            for step in rank.steps
            if step.forward_ns and step.gather_ns is not None and step.gather_exposed_ns is not None
        ]
        if parts:
            found.append((median(a for a, _ in parts), median(b for _, b in parts), rank))
    exposed, gather, rank = max(found, key=lambda each: each[0], default=(0.0, 0.0, shares.rank))
    if exposed <= limits.gather_share:
        return []
    return [
        Rung(
            causes.GATHER_BOUND,
            shares.whole > limits.exposed_fail,
            f"{rank.name}: all-gather blocks {pct(exposed)} of the forward pass (limit "
            f"{pct(limits.gather_share)}), and runs in {pct(gather)} of it",
            "certain",
            (),
            {
                "gather_exposed_percent_of_forward": percent(exposed),
                "gather_percent_of_forward": percent(gather),
                "exposed_percent_of_step": percent(shares.exposed),
            },
        )
    ]


def latency_rung(shares: Shares, limits: Limits, known: Known) -> list[Rung]:
    """Is most of its time the start-up of many small collectives?"""
    rank = shares.rank
    moved = [move for move in rank.moved if role_of_call(move.kind, move.about) is Role.OTHER]
    count = sum(move.count for move in moved) / len(rank.steps)
    comm_ns = sum(step.part(Role.OTHER).comm_ns for step in rank.steps) / len(rank.steps)
    if count < limits.many or not comm_ns:
        return []
    alpha_us, origin = _alpha(moved, known)
    small = sum(move.small_ns for move in moved) / max(1, sum(move.time_ns for move in moved))
    against: tuple[str, ...] = ()
    if alpha_us is not None:
        part = count * alpha_us * 1000 / comm_ns
        how = f"{count:.0f} x {alpha_us:.0f} us ({origin}) is {pct(min(1.0, part))} of its time"
        sure = "certain" if known.alpha_us is not None else "likely"
    else:
        part = small
        how = f"{pct(small)} of its time in messages below 1 MiB"
        sure = "likely"
        against = ("the latency of a small message is not known: give that of a sweep",)
    if part <= limits.latency_share:
        return []
    return [
        Rung(
            causes.SMALL_COLLECTIVES,
            shares.whole > limits.exposed_fail,
            f"{rank.name}: {_exposure(shares, limits)}, {count:.0f} collectives a step, {how} "
            f"(limit {pct(limits.latency_share)})",
            sure,
            against,
            {
                "collectives_per_step": round(count, 1),
                "latency_percent_of_communication": percent(min(1.0, part)),
                "exposed_percent_of_step": percent(shares.exposed),
            },
        )
    ]


def _alpha(moved: Sequence[Moved], known: Known) -> tuple[float | None, str]:
    if known.alpha_us is not None:
        return known.alpha_us, "given"
    count = sum(move.tiny_count for move in moved)
    if count < _TINY_ENOUGH:
        return None, ""
    return sum(move.tiny_ns for move in moved) / count / 1000, "mean of those below 64 kB"


def serial_rung(shares: Shares, limits: Limits, wire: float = 1.0) -> list[Rung]:
    """Does it run after the computing instead of beneath it?

    ``wire``: the share of its measured bandwidth that the wire gives. Not where what overlaps would
    be enough of it at the whole bandwidth, nor where there is next to nothing to run beneath.
    """
    overlap = shares.overlap or 0.0
    if overlap >= wire * limits.overlap or _hideable(shares) <= limits.exposed_warn:
        return []
    against: tuple[str, ...] = ()
    if shares.comm < limits.comm_share:
        against = (f"all of it is {pct(shares.comm)} of the step, and no more can be gained",)
    blanks = [step.longest_blank_ns or 0 for step in shares.rank.steps]
    longest = f"; longest blank {max(blanks) / 1e6:.2f} ms" if any(blanks) else ""
    return [
        Rung(
            causes.NOT_OVERLAPPED,
            shares.whole > limits.exposed_fail,
            f"{shares.rank.name}: {_exposure(shares, limits)}; communication{shares.apart} takes "
            f"{pct(shares.comm)} and only {pct(overlap)} of it overlaps (limit "
            f"{pct(limits.overlap)}){longest}",
            "likely" if against else "certain",
            against,
            {
                "exposed_percent_of_step": percent(shares.exposed),
                "overlap_percent": percent(overlap),
                "communication_percent_of_step": percent(shares.comm),
            },
        )
    ]


def exposed_rung(shares: Shares, limits: Limits) -> list[Rung]:
    """None of the above: it overlaps as far as it can, and is exposed all the same."""
    overlap, compute = shares.overlap or 0.0, shares.rank.share("compute_ns") or 0.0
    though = f", though {pct(overlap)} of the communication overlaps"
    if overlap < limits.overlap:
        though = (
            f"; communication{shares.apart} takes {pct(shares.comm)} and computing {pct(compute)}: "
            "too little to hide it"
        )
    return [
        Rung(
            causes.EXPOSED,
            shares.whole > limits.exposed_fail,
            f"{shares.rank.name}: {_exposure(shares, limits)}{though}",
            "certain",
            (),
            {
                "exposed_percent_of_step": percent(shares.exposed),
                "overlap_percent": percent(overlap),
                "compute_percent_of_step": percent(compute),
            },
        )
    ]


def _hideable(shares: Shares) -> float:
    """The share of the step that would be gained if all computing ran beside communication."""
    compute = shares.rank.share("compute_ns") or 0.0
    return min(compute, shares.comm) - (shares.overlap or 0.0) * shares.comm


def _exposure(shares: Shares, limits: Limits) -> str:
    return f"exposed communication is {exposure(shares, limits)}"


def exposure(shares: Shares, limits: Limits) -> str:
    """How much of the step is exposed, and by which limit that is too much."""
    bound = limits.exposed_fail if shares.whole > limits.exposed_fail else limits.exposed_warn
    of = f", {pct(shares.whole)} with all others" if shares.whole > shares.exposed else ""
    return f"{pct(shares.exposed)} of the step{of} (limit {pct(bound)})"


def pct(share: float) -> str:
    """A share as a person reads it."""
    return f"{100 * share:.0f} %" if share >= 0.1 or share == 0 else f"{100 * share:.1f} %"


def percent(share: float) -> float:
    """A share as a measured value."""
    return round(100 * share, 2)

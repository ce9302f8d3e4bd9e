"""The rungs of the ladder: each asks one question of the facts, and says what speaks against it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from statistics import median
from typing import Final

from commcheck.lazy import dataclass, regex
from commcheck.model import Cause
from commcheck.trace import causes
from commcheck.trace.facts import JobFacts, Moved, RankFacts, Wire
from commcheck.trace.limits import Limits

_TENSOR: Final = regex(r"tensor|(?<![a-z])tp(?![a-z])|(?<!data_)model_parallel", re.I)
_TINY_ENOUGH: Final = 5
"""So many collectives below 64 kB give a mean that is called alpha."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known from elsewhere: a sweep's busbw in GB/s, and its latency in us."""

    busbw_gbytes: float | None = None
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
    """The shares of the rank that is exposed most, medians over its steps."""

    rank: RankFacts
    exposed: float
    comm: float
    overlap: float | None
    host_wait: float | None
    bubble: float


def launch_rung(job: JobFacts, limits: Limits, exposed: float) -> list[Rung]:
    """The host: does the compute stream wait for launches?"""
    waits = [(rank.share("host_wait_ns") or 0.0, rank) for rank in job.ranks]
    wait, rank = max(waits, key=lambda each: each[0])
    if wait <= limits.host_wait_warn:
        return []
    against: tuple[str, ...] = ()
    if exposed > wait:
        against = (f"exposed communication is larger: {pct(exposed)} of the step",)
    return [
        Rung(
            causes.LAUNCH_BOUND,
            wait > limits.host_wait_fail,
            f"{rank.name}: the compute stream waits for the host's launches for {pct(wait)} of "
            f"the step (limit {pct(limits.host_wait_warn)}): not communication",
            "certain",
            against,
            {"host_wait_percent_of_step": percent(wait)},
        )
    ]


def idle_rung(job: JobFacts, limits: Limits) -> list[Rung]:
    """Is the device idle, where nothing tells whether it waits for launches?"""
    # What computes on a host alone leaves gaps between its operators.
    untold = [
        rank for rank in job.ranks if rank.layout != "cpu" and rank.share("host_wait_ns") is None
    ]
    idle, rank = max(
        ((rank.share("idle_ns") or 0.0, rank) for rank in untold),
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
            shares.exposed > limits.exposed_fail,
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


def tensor_rung(shares: Shares, limits: Limits) -> list[Rung]:
    """Is most of the communication inside layers, where it cannot hide?"""
    total = sum(move.time_ns for move in shares.rank.moved)
    mine = sum(move.time_ns for move in shares.rank.moved if _TENSOR.search(move.about))
    if 2 * mine <= total:
        return []
    return [
        Rung(
            causes.TENSOR_PARALLEL,
            False,  # exposed by nature: only a sweep can tell whether it is slow
            f"{shares.rank.name}: {_exposure(shares, limits)}, {pct(mine / total)} of the "
            "communication time in tensor-parallel groups",
            "likely",
            ("what each group exposes is not told apart",),
            {"exposed_percent_of_step": percent(shares.exposed)},
        )
    ]


def latency_rung(shares: Shares, limits: Limits, known: Known) -> list[Rung]:
    """Is most of its time the start-up of many small collectives?"""
    rank = shares.rank
    moved = rank.moved
    count = sum(move.count for move in moved) / len(rank.steps)
    comm_ns = sum(step.comm_ns for step in rank.steps) / len(rank.steps)
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
            shares.exposed > limits.exposed_fail,
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


def serial_rung(shares: Shares, limits: Limits) -> list[Rung]:
    """Does it run after the computing instead of beneath it?"""
    overlap = shares.overlap or 0.0
    if overlap >= limits.overlap:
        return []
    against: tuple[str, ...] = ()
    if shares.comm < limits.comm_share:
        against = (f"all of it is {pct(shares.comm)} of the step, and no more can be gained",)
    blanks = [step.longest_blank_ns or 0 for step in shares.rank.steps]
    longest = f"; longest blank {max(blanks) / 1e6:.2f} ms" if any(blanks) else ""
    return [
        Rung(
            causes.NOT_OVERLAPPED,
            shares.exposed > limits.exposed_fail,
            f"{shares.rank.name}: {_exposure(shares, limits)}; communication takes "
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


def wire_rung(job: JobFacts, shares: Shares, limits: Limits, known: Known) -> list[Rung]:
    """Do large collectives fall short of the busbw that a sweep measured?"""
    if known.busbw_gbytes is None:
        return []
    slow = [wire for wire in job.wires if _is_slow(wire, limits, known.busbw_gbytes)]
    if not slow:
        return []
    wire = max(slow, key=lambda each: each.time_ns)
    against = ("one rank only: its time includes waiting for the others",)
    return [
        Rung(
            causes.SLOW_WIRE,
            shares.exposed > limits.exposed_fail,
            f"{wire.kind} of {wire.size_bytes / wire.count / 1e6:.0f} MB among {wire.group_size} "
            f"ranks runs at {wire.busbw_gbytes:.1f} GB/s busbw, {known.busbw_gbytes:.1f} were "
            f"measured (limit {pct(limits.wire_share)})",
            "likely" if wire.includes_waiting else "certain",
            against if wire.includes_waiting else (),
            {"busbw_gbytes": round(wire.busbw_gbytes, 2), "expected_gbytes": known.busbw_gbytes},
        )
    ]


def _is_slow(wire: Wire, limits: Limits, busbw_gbytes: float) -> bool:
    large = wire.size_bytes / wire.count >= limits.wire_bytes
    return large and wire.busbw_gbytes < limits.wire_share * busbw_gbytes


def bubble_rung(shares: Shares, limits: Limits) -> list[Rung]:
    """Do pipeline stages wait for their neighbours?"""
    if shares.bubble <= limits.bubble_warn:
        return []
    return [
        Rung(
            causes.PIPELINE_BUBBLE,
            False,
            f"send and receive wait for {pct(shares.bubble)} of the step (limit "
            f"{pct(limits.bubble_warn)}): a pipeline bubble, not bandwidth",
            "likely",
            (),
            {"bubble_percent_of_step": percent(shares.bubble)},
        )
    ]


def exposed_rung(shares: Shares, limits: Limits) -> list[Rung]:
    """None of the above: it overlaps, and is exposed all the same."""
    return [
        Rung(
            causes.EXPOSED,
            shares.exposed > limits.exposed_fail,
            f"{shares.rank.name}: {_exposure(shares, limits)}, though "
            f"{pct(shares.overlap or 0.0)} of the communication overlaps",
            "certain",
            (),
            {
                "exposed_percent_of_step": percent(shares.exposed),
                "overlap_percent": percent(shares.overlap or 0.0),
            },
        )
    ]


def _exposure(shares: Shares, limits: Limits) -> str:
    is_fail = shares.exposed > limits.exposed_fail
    bound = limits.exposed_fail if is_fail else limits.exposed_warn
    return f"exposed communication is {pct(shares.exposed)} of the step (limit {pct(bound)})"


def pct(share: float) -> str:
    """A share as a person reads it."""
    return f"{100 * share:.0f} %" if share >= 0.1 or share == 0 else f"{100 * share:.1f} %"


def percent(share: float) -> float:
    """A share as a measured value."""
    return round(100 * share, 2)

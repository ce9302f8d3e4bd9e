"""Whether large collectives fall short of what a sweep measured, where the two can be compared.

busbw of another collective, or among other ranks, is another number: one NIC a rank instead of
NVLink, a tree instead of a ring. So only like is held against like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final

from commcheck.errors import UsageError
from commcheck.trace import causes, names
from commcheck.trace.facts import JobFacts, Wire
from commcheck.trace.limits import Limits
from commcheck.trace.rungs import Known, Rung, Shares, pct

MEASURED: Final = "all_reduce"
"""What a number without a name is of."""


def busbw_told(text: str) -> Mapping[str, float]:
    """GB/s by collective: ``380``, of all_reduce, or ``all_gather=350,reduce_scatter=340``.

    Raises ``UsageError`` for anything else.
    """
    told = {}
    for part in text.split(","):
        name, _, number = part.rpartition("=")
        kind = names.collective(name.strip() or MEASURED)
        try:
            gbytes = float(number)
        except ValueError:
            gbytes = 0.0
        if kind == "other" or not (isfinite(gbytes) and gbytes > 0):
            what = f"{part!r}: wanted GB/s, or a collective and GB/s: 380, all_gather=350"
            raise UsageError(f"--busbw: error: {what} [trace]")
        told[kind] = gbytes
    return told


def wire_rung(job: JobFacts, shares: Shares, limits: Limits, known: Known) -> list[Rung]:
    """Do large collectives fall short of the busbw that a sweep measured?"""
    wire = _slow(job, limits, known)
    if wire is None:
        return []
    want = known.busbw_gbytes[wire.kind]
    against = ("one rank only: its time includes waiting for the others",)
    return [
        Rung(
            causes.SLOW_WIRE,
            shares.whole + shares.tensor > limits.exposed_fail,
            f"{wire.kind} of {wire.size_bytes / wire.count / 1e6:.0f} MB among {wire.group_size} "
            f"ranks runs at {wire.busbw_gbytes:.1f} GB/s busbw, {want:.1f} were measured (limit "
            f"{pct(limits.wire_share)})",
            "likely" if wire.includes_waiting else "certain",
            against if wire.includes_waiting else (),
            {"busbw_gbytes": round(wire.busbw_gbytes, 2), "expected_gbytes": want},
        )
    ]


def wire_given(job: JobFacts, limits: Limits, known: Known) -> float:
    """The share of its measured bandwidth that a wire gives of which ``wire_rung`` is certain; 1
    where there is none."""
    wire = _slow(job, limits, known)
    if wire is None or wire.includes_waiting:
        return 1.0
    return wire.busbw_gbytes / known.busbw_gbytes[wire.kind]


def _slow(job: JobFacts, limits: Limits, known: Known) -> Wire | None:
    slow = (
        wire
        for wire in _large(job, limits)
        if _is_like(wire, job, known)
        and wire.busbw_gbytes < limits.wire_share * known.busbw_gbytes[wire.kind]
    )
    return max(slow, key=lambda each: each.time_ns, default=None)


def unlike(job: JobFacts, limits: Limits, known: Known) -> str:
    """A note on the large collectives that no measured busbw can be held against; "" for none."""
    large = _large(job, limits)
    if known.busbw_gbytes and not large and any(rank.moved for rank in job.ranks):
        return (
            f"no collective of {limits.wire_bytes / 1e6:.0f} MB or more tells its bytes: the busbw "
            "given is held against nothing"
        )
    names_of = {
        f"{wire.kind} among {wire.group_size} ranks"
        for wire in large
        if not _is_like(wire, job, known)
    }
    if not names_of:
        return ""
    if not known.busbw_gbytes:
        return "the bandwidth of the wire is not judged: give the busbw that a sweep measured"
    return (
        f"not comparable with the busbw given: {', '.join(sorted(names_of))}; it is of the same "
        "collective among all ranks of the job"
    )


def _large(job: JobFacts, limits: Limits) -> Sequence[Wire]:
    return [wire for wire in job.wires if wire.size_bytes / wire.count >= limits.wire_bytes]


def _is_like(wire: Wire, job: JobFacts, known: Known) -> bool:
    """The same collective, among all ranks; the largest group seen need not be all of them."""
    world = max((rank.world or 0 for rank in job.ranks), default=0)
    return wire.kind in known.busbw_gbytes and wire.group_size == world

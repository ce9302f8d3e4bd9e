"""Which known fault a sweep looks like, with what speaks for it and what against.

The shape alone never proves a cause: NCCL's lines of the same run, where they are there, speak
first. Shapes and numbers: the fraction of the bound, where the curve stops rising, whether it falls
again, and how far repeats differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from commcheck.jobs import causes
from commcheck.jobs.bound import WIRE_GBYTES, Expectation, Fabric, nvls_reference
from commcheck.jobs.fit import Shape
from commcheck.jobs.reading import MIB, Sweep, median, size_text
from commcheck.jobs.witness import Witness
from commcheck.lazy import dataclass
from commcheck.model import Cause
from commcheck.report.counts import many

# A clean ring reaches about 0.95 of what its slowest part carries. Source: public tables of
# H100 and A100 clusters reach 0.91 to 0.97.
_REACHED: Final = 0.95
_COLLAPSE_FROM: Final = 16 * MIB
_TCP_MOST_GBYTES: Final = 8.0
_TCP_KNEE: Final = 4 * MIB
_RAIL_GBITS: Final = (10, 25, 40, 50, 100, 200, 400)


@dataclass(frozen=True, slots=True)
class Signature:
    """``speaks_for`` and ``against`` are short clauses; ``settled``: NCCL itself said it."""

    cause: Cause
    speaks_for: tuple[str, ...]
    against: tuple[str, ...] = ()
    settled: bool = False

    @property
    def text(self) -> str:
        """One clause for a reason."""
        verb = "it is" if self.settled else "it looks like"
        text = (
            f"{verb} '{self.cause.slug.removeprefix('collective-')}': {', '.join(self.speaks_for)}"
        )
        return f"{text}; but {', '.join(self.against)}" if self.against else text


@dataclass(frozen=True, slots=True)
class Case:
    """All that a classification rests on; ``fraction`` of what was expected, 0 to 1 and above."""

    sweep: Sweep
    shape: Shape
    expectation: Expectation
    hosts: int
    fabric: Fabric
    witness: Witness
    fraction: float


def collapse(shape: Shape) -> float | None:
    """Last busbw over the best, for sizes of 16 MiB and more; None below three sizes."""
    points = shape.at_least(_COLLAPSE_FROM)
    if len(points) < 3:
        return None
    best = max(busbw for _, busbw in points)
    return points[-1][1] / best if best > 0 else None


def placement(shape: Shape) -> float:
    """The median difference of both placements at 64 MiB and more."""
    return median([apart for _, apart in shape.placement]) if shape.placement else 0.0


def classify(case: Case) -> Signature:
    """The best fitting signature of a run that is too slow."""
    tests = _INSIDE if case.hosts == 1 else _BETWEEN
    for test in tests:
        found = test(case)
        if found is not None:
            return found
    return Signature(causes.SLOW, ("no known fault has this curve",))


# --- inside a host ------------------------------------------------------------------------------


def _nvlink_down(case: Case) -> Signature | None:
    if case.fraction >= 0.10 or case.sweep.tool == "hccl_test":
        return None
    said = f"{case.fraction:.0%} of the expected is PCIe class, in one host"
    return Signature(causes.NVLINK_DOWN, (said,))


def _nvls_off(case: Case) -> Signature | None:
    gpu = case.sweep.ranks[0].name if case.sweep.ranks else ""
    wire = next((value for form, value in WIRE_GBYTES if form.search(gpu)), None)
    if wire is None or not nvls_reference(case.sweep) or not 0.74 <= case.shape.peak / wire <= 0.86:
        return None
    said = f"{case.shape.peak / wire:.0%} of {wire:g} GB/s is what a ring reaches without NVLS"
    if case.witness.nvls is False:
        return Signature(causes.NVLS_OFF, (said, "NCCL says that NVLS is not available"), (), True)
    against = ("NCCL says that NVLS is available",) if case.witness.nvls else ()
    return Signature(causes.NVLS_OFF, (said,), against)


def _node_slow(_case: Case) -> Signature:
    return Signature(causes.NVLINK_DEGRADED, ("it is slow inside one host, and no NIC takes part",))


# --- between hosts ------------------------------------------------------------------------------


def _sockets(case: Case) -> Signature | None:
    forced = case.witness.forced
    if case.witness.network != "Socket" and not forced:
        return None
    said = f"{forced} is set" if forced else "NCCL says that it uses sockets"
    return Signature(causes.TCP, (said,), (), True)


def _loss(case: Case) -> Signature | None:
    left = collapse(case.shape)
    if left is None or left >= 0.85:
        return None
    points = case.shape.at_least(_COLLAPSE_FROM)
    size, best = max(points, key=lambda point: point[1])
    said = [f"{best:.1f} GB/s at {size_text(size)} falls to {points[-1][1]:.1f} at the end"]
    if placement(case.shape) > 0.10:
        said.append(f"both placements differ by {placement(case.shape):.0%}")
    against: tuple[str, ...] = ()
    if case.sweep.tool == "hccl_test":
        against = ("above HCCL_BUFFSIZE (200 MB unless set) healthy hosts fall too",)
    return Signature(causes.LOSS, tuple(said), against)


def _tcp_shape(case: Case) -> Signature | None:
    shape = case.shape
    if case.sweep.tool == "hccl_test" or case.fraction >= 0.10 or shape.peak > _TCP_MOST_GBYTES:
        return None
    if shape.knee is None or (shape.knee > _TCP_KNEE and shape.points[0][0] < _TCP_KNEE):
        return None
    said = [f"only {shape.peak:.1f} GB/s, {case.fraction:.1%} of the bound"]
    if shape.knee > shape.points[0][0]:
        said.append(f"half of it at {size_text(shape.knee)} already")
    if shape.alpha_us is not None and shape.alpha_us > 200:
        said.append(f"small messages take {shape.alpha_us:.0f} us")
    if case.witness.network == "IB":
        # NCCL contradicts: something else makes RDMA this slow.
        return Signature(causes.SLOW, tuple(said), ("NCCL says that it uses IB, so it is no TCP",))
    return Signature(causes.TCP, tuple(said))


def _no_gpudirect(case: Case) -> Signature | None:
    if case.witness.gpudirect is not False:
        return None
    return Signature(causes.NO_GPUDIRECT, ("NCCL's channels go via IB without GDRDMA",), (), True)


def _short_list(case: Case) -> Signature | None:
    nics, rails = case.witness.nics, case.fabric.rails
    if nics is None or not rails or nics >= rails:
        return None
    return Signature(causes.FEW_NICS, (f"NCCL lists {many(nics, 'NIC')} of {rails}",), (), True)


def _unsteady(case: Case) -> Signature | None:
    spread = case.shape.spread or 0.0
    apart = placement(case.shape)
    if spread <= 0.05 and apart <= 0.10:
        return None
    said = f"repeats differ by {max(spread, apart):.0%} at large sizes"
    return Signature(causes.CONGESTION, (said,))


def _half(case: Case) -> Signature | None:
    if not 0.40 <= case.fraction <= 0.60:
        return None
    said = f"a clean curve at {case.fraction:.0%} of the bound"
    return Signature(causes.HALF, (said,), _absent(case))


def _slow_rail(case: Case) -> Signature | None:
    nic, rails = case.fabric.nic_gbits, case.fabric.rails
    if not nic or not rails or case.expectation.kind != "network" or case.fraction < 0.2:
        return None
    for rate in _RAIL_GBITS:
        if rate < nic and abs(case.fraction / _REACHED * nic / rate - 1) <= 0.08:
            said = f"a clean curve at {case.fraction:.0%}, what {rails} rails at {rate} Gb/s carry"
            few = round(case.fraction / _REACHED * rails)
            other = f"a list of {few} NICs instead of {rails} would look the same"
            known = case.witness.nics == rails
            return Signature(causes.SLOW_RAIL, (said,), () if known else (other,))
    return None


def _few_nics(case: Case) -> Signature | None:
    rails = case.fabric.rails
    if not rails or case.expectation.kind != "network":
        return None
    share = case.fraction / _REACHED * rails
    if round(share) in range(1, rails) and abs(share / round(share) - 1) <= 0.06 and share < 5:
        said = f"a clean curve at {case.fraction:.0%}, what {round(share)} of {rails} NICs carry"
        return Signature(causes.FEW_NICS, (said,), _absent(case))
    return None


def _absent(case: Case) -> tuple[str, ...]:
    if case.witness.nics is not None and case.witness.nics == case.fabric.rails:
        return (f"NCCL lists all {case.witness.nics} NICs",)
    return ()


_Test = Callable[[Case], Signature | None]
_INSIDE: Final[tuple[_Test, ...]] = (_nvlink_down, _nvls_off, _node_slow)
_BETWEEN: Final[tuple[_Test, ...]] = (
    _sockets,
    _loss,
    _tcp_shape,
    _no_gpudirect,
    _short_list,
    _unsteady,
    _half,
    _slow_rail,
    _few_nics,
)

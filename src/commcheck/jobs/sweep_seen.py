"""One sweep with all that was worked out of it: what its verdicts rest on, and how they name it."""

from __future__ import annotations

from typing import Final

from commcheck.check import limit
from commcheck.jobs.bound import Expectation, Fabric
from commcheck.jobs.fit import Shape
from commcheck.jobs.reading import Sweep
from commcheck.jobs.signature import Case, Signature, classify
from commcheck.jobs.witness import Witness
from commcheck.lazy import dataclass
from commcheck.report.counts import many

_PRACTICE: Final = "between public practice (0.60 to 0.95) and healthy tables (0.91 to 0.97)"
_TABLES: Final = "public nccl-tests tables of healthy clusters"


@dataclass(frozen=True, slots=True)
class Limits:
    """Shares are of the bound or reference; sizes are in bytes as printed."""

    network_pass: float = limit(0.85, unit="of the network bound", source=_PRACTICE)
    reference_pass: float = limit(0.90, unit="of the reference", source=_PRACTICE)
    warn_from: float = limit(0.70, unit="of bound or reference", source=_PRACTICE)
    hccl_fail: float = limit(
        0.10,
        unit="of the network bound",
        source="less than one port of eight carries; no public figure of healthy NPUs is trusted, "
        "so that above it only a reference decides",
    )
    above_ceiling: float = limit(1.03, unit="of the hard bound", source="rounding of two decimals")
    collapse_fail: float = limit(0.70, unit="of the best, at the last size", source=_TABLES)
    collapse_warn: float = limit(0.85, unit="of the best, at the last size", source=_TABLES)
    dip_warn: float = limit(
        0.80, unit="of the lower neighbour", source="healthy dips reach 0.86 at an algorithm change"
    )
    placement_fail: float = limit(0.20, unit="out of place against in place", source=_TABLES)
    placement_warn: float = limit(0.10, unit="out of place against in place", source=_TABLES)
    spread_fail: float = limit(0.15, unit="coefficient of variation", source=_TABLES)
    spread_warn: float = limit(0.05, unit="coefficient of variation", source=_TABLES)
    slow_iteration_warn: float = limit(1.5, unit="of the median iteration", source=_TABLES)
    latency_node_us: float = limit(120.0, unit="us", source="3 x 40 us, healthy single hosts")
    latency_pair_us: float = limit(240.0, unit="us", source="3 x 80 us, healthy RDMA pairs")


@dataclass(frozen=True, slots=True)
class Seen:
    """One run with all that was worked out of it."""

    sweep: Sweep
    shape: Shape
    hosts: int | None
    fabric: Fabric
    witness: Witness
    expected: Expectation | None
    missing: str
    value: float  # busbw that is judged, GB/s
    extrapolated: bool
    limits: Limits

    @property
    def fraction(self) -> float | None:
        """What is judged, of what is expected."""
        return None if self.expected is None else self.value / self.expected.gbytes


def percent(fraction: float) -> str:
    """A share; a tenth of a percent counts where it is small."""
    return f"{fraction:.0%}" if fraction >= 0.1 else f"{fraction:.1%}"


def name_of(seen: Seen) -> str:
    """``all_reduce with 16 ranks on gpu-01, gpu-02``."""
    sweep = seen.sweep
    unnamed = many(seen.hosts, "host") if seen.hosts else "unknown hosts"
    where = ", ".join(sweep.hosts[:4]) or unnamed
    if len(sweep.hosts) > 4:
        where = f"{sweep.hosts[0]} to {sweep.hosts[-1]}, {len(sweep.hosts)} hosts"
    ranks = many(sweep.nranks, "rank") if sweep.nranks else "? ranks"
    return f"{sweep.collective or 'a collective'} with {ranks} on {where}"


def signature_of(seen: Seen, expected: Expectation, fraction: float) -> Signature:
    """Which known fault the curve looks like."""
    return classify(
        Case(
            seen.sweep,
            seen.shape,
            expected,
            seen.hosts or 1,
            seen.fabric,
            seen.witness,
            fraction,
        )
    )

"""The matrix: accelerators against links, instant by instant; the time decides. Pure.

| accelerators | a link near its rate | no link near its rate |
|---|---|---|
| hardly compute | communication bound: fail | waiting: warn |
| between | undecidable | undecidable |
| compute | overlapped: pass | compute bound: pass |

Between is more than a collective's own kernels take and less than training that computes: there the
step itself has to be seen. What is not exported is never taken for healthy, and an idle host is not
judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Final

from commcheck.check import failed, not_applicable, passed, undecidable, warned
from commcheck.counters import length
from commcheck.lazy import dataclass
from commcheck.metrics.causes import BOUND, RDMA_UNUSED, WAITING
from commcheck.metrics.curves import Curve
from commcheck.metrics.limits import Limits
from commcheck.metrics.load import Compute, Load, load_of
from commcheck.metrics.picture import curves
from commcheck.metrics.reading import Metrics
from commcheck.model import Status, Verdict


class Quadrant(StrEnum):
    """A field of the matrix, the worst first; UNKNOWN: one of the two was not told."""

    BOUND = "communication bound"
    WAITING = "waiting"
    UNKNOWN = "unknown"
    BETWEEN = "neither waiting nor computing"
    OVERLAPPED = "computing and communicating at once"
    COMPUTING = "compute bound"


_ORDER: Final = tuple(Quadrant)


def quadrants(load: Load, limits: Limits) -> tuple[Quadrant | None, ...]:
    """The field at each instant; None where no training ran."""
    compute = load.compute
    return tuple(
        None
        if not works
        else _quadrant(
            None if compute is None else compute.curve[place],
            compute,
            None if load.nic is None else load.nic.share[place],
            None if load.nvlink is None else load.nvlink.share[place],
            limits,
        )
        for place, works in enumerate(load.works)
    )


def _quadrant(
    active: float | None,
    compute: Compute | None,
    nic: float | None,
    nvlink: float | None,
    limits: Limits,
) -> Quadrant:
    if active is None or compute is None:
        return Quadrant.UNKNOWN
    if compute.low <= active < compute.high:
        return Quadrant.BETWEEN
    is_high = max(nic or 0.0, nvlink or 0.0) >= limits.link_high
    if active >= compute.high:  # then no link is what it waits for, whatever links carry
        return Quadrant.OVERLAPPED if is_high else Quadrant.COMPUTING
    if is_high:
        return Quadrant.BOUND
    return Quadrant.UNKNOWN if nic is None else Quadrant.WAITING


def judge(
    metrics: Metrics,
    rails: Mapping[str, int] | None,
    rate_gbits: float | None,
    limits: Limits,
    no_rdma: str = "",
) -> Verdict:
    """The verdict on a host. All but ``metrics`` and ``limits`` as ``load_of`` takes them."""
    load = load_of(metrics, rails, rate_gbits, limits, no_rdma)
    if load is None:
        return _no_data(metrics)
    if load.silent_s > limits.silent_s:
        return undecidable(
            f"no sample of the {load.noun}s for {_ago(load.silent_s, metrics)}",
            turn_on="is the exporter up, and does the server scrape it? see its page of targets",
        )
    fields = quadrants(load, limits)
    worked = [each for each in fields if each is not None]
    minutes = len(worked) * metrics.step_s / 60
    if not worked:
        span = length((metrics.points - 1) * metrics.step_s)
        return not_applicable(f"no training ran here in the last {span}: {load.total} "
                              f"{load.noun}s idle")  # fmt: skip
    if minutes < limits.least_min:
        return undecidable(
            f"training ran for {minutes:g} min only", turn_on="ask again when it has run for longer"
        )
    verdict = _judge(_Case(metrics, load, fields, limits))
    if verdict.status is Status.PASS:
        return verdict
    return replace(verdict, figures=(curves(metrics, load, limits),))


@dataclass(frozen=True, slots=True)
class _Case:
    """A host on which training ran for long enough."""

    metrics: Metrics
    load: Load
    fields: tuple[Quadrant | None, ...]
    limits: Limits

    def share(self, curve: Curve, field: Quadrant) -> float | None:
        """The mean of a curve over the instants of one field."""
        values = [
            value
            for value, each in zip(curve, self.fields, strict=True)
            if each is field and value is not None
        ]
        return sum(values) / len(values) if values else None

    @property
    def is_sure(self) -> bool:
        """Whether what computes was measured, and a link that is surely training's was full."""
        compute, limits = self.load.compute, self.limits
        return (
            compute is not None
            and compute.sure
            and any(
                link.sure and (self.share(link.share, Quadrant.BOUND) or 0.0) >= limits.link_high
                for link in self.load.links
            )
        )

    def minutes(self, field: Quadrant) -> float:
        """For how long the field held."""
        return self.fields.count(field) * self.metrics.step_s / 60

    def told(self, field: Quadrant) -> str:
        """The two sides in numbers, and for how long it was so."""
        parts = []
        compute = self.load.compute
        if compute is not None and (active := self.share(compute.curve, field)) is not None:
            parts.append(f"{compute.measure} {active:.0%}")
        parts += [
            f"{link.name} at {share:.0%} of {link.rate_gbytes:.4g} GB/s"
            for link in self.load.links
            if (share := self.share(link.share, field)) is not None
        ]
        trained = sum(each is not None for each in self.fields) * self.metrics.step_s / 60
        return f"{', '.join(parts)} for {self.minutes(field):g} of {trained:g} min of training"

    @property
    def measured(self) -> dict[str, object]:
        """The numbers for the report."""
        load, numbers = self.load, dict[str, object]()
        main = Counter(each for each in self.fields if each is not None)
        numbers["minutes"] = {str(each): self.minutes(each) for each in _ORDER if main[each]}
        numbers[f"{load.noun.lower()}s_working"] = load.working
        if load.compute is not None:
            numbers[f"{load.compute.measure.replace(' ', '_').lower()}_percent"] = _percent(
                self._mean(load.compute.curve)
            )
        for link in load.links:
            numbers[f"{link.name.replace(' ', '_').lower()}_percent"] = _percent(
                self._mean(link.share)
            )
        extra = {
            "tcp_gbytes_per_s": load.tcp_gbytes,
            "nvlink_gbytes_per_s": load.nvlink_gbytes,
            "pcie_gbytes_per_s": load.pcie_gbytes,
        }
        numbers |= {name: round(v, 3) for name, v in extra.items() if v is not None}
        return numbers

    def _mean(self, curve: Curve) -> float | None:
        values = [
            value
            for value, each in zip(curve, self.fields, strict=True)
            if each is not None and value is not None
        ]
        return sum(values) / len(values) if values else None


def _judge(case: _Case) -> Verdict:
    """The field that held for longest speaks; communication bound speaks in any case."""
    load, measured = case.load, case.measured
    held = Counter(each for each in case.fields if each is not None)
    field = max(_ORDER, key=lambda each: (held[each], -_ORDER.index(each)))
    bound_min = case.minutes(Quadrant.BOUND)
    if field is Quadrant.BOUND or bound_min >= case.limits.least_min:
        say = failed if field is Quadrant.BOUND and case.is_sure else warned
        remark = f"; {load.lacks[0]}" if load.lacks else ""
        told = f"{Quadrant.BOUND}: {case.told(Quadrant.BOUND)}{remark}"
        return say(BOUND, told, measured=measured)
    if field is Quadrant.UNKNOWN:
        told = "; ".join(load.lacks) or "some samples are missing on the server"
        reason = f"{case.told(field)}: not all that decides is known{case.metrics.warned}"
        return undecidable(reason, turn_on=told)
    if field is Quadrant.BETWEEN:
        turn_on = "; ".join((*load.lacks, "profile a few steps: commcheck analyze trace DIR"))
        return undecidable(f"{field}: {case.told(field)}", turn_on=turn_on)
    if field is Quadrant.WAITING:
        return _waiting(case, measured)
    remark = f"; better: {load.lacks[0]}" if load.lacks else ""
    return passed(f"{field}: {case.told(field)}{remark}", measured=measured)


def _waiting(case: _Case, measured: dict[str, object]) -> Verdict:
    """Waiting for what? Sockets that carry what RDMA should are named."""
    load, limits = case.load, case.limits
    told = f"{case.load.noun}s wait: {case.told(Quadrant.WAITING)}"
    tcp = load.tcp_gbytes or 0.0
    share = None if load.nic is None else case.share(load.nic.share, Quadrant.WAITING)
    if share is not None and share < limits.rdma_unused and tcp >= limits.tcp_gbytes:
        reason = f"{told}; {tcp:.2f} GB/s go both ways over TCP"
        return warned(RDMA_UNUSED, reason, measured=measured)
    if load.nvlink_gbytes and load.nvlink_gbytes > 1:
        told += f"; NVLink carries {load.nvlink_gbytes:.3g} GB/s a GPU"
    elif share is not None and share < limits.rdma_unused:
        # spidernet-io/spiderpool issue 3790: a VF in exclusive mode is not seen on the host.
        told += "; node_exporter does not see RDMA devices that pods have to themselves (SR-IOV)"
    return warned(WAITING, told, measured=measured)


def _no_data(metrics: Metrics) -> Verdict:
    names = ", ".join(metrics.names)
    if not metrics.lines:
        known = f"; it knows {', '.join(metrics.others)}" if metrics.others else ""
        within = f" with {metrics.selector}" if metrics.selector else ""
        turn_on = "set commcheck_prometheus_name, or have the host's exporters scraped"
        if within and not known:
            turn_on = f"no host has that: mend commcheck_prometheus_selector, or {turn_on}"
        return undecidable(
            f"{metrics.server} has no series of {names}{within}{known}{metrics.warned}",
            turn_on=turn_on,
        )
    return undecidable(
        f"{metrics.server} has nothing of the accelerators of {names}{metrics.warned}",
        turn_on=metrics.elsewhere("accelerators")
        or "run dcgm-exporter or npu-exporter there, with DCGM_FI_PROF_SM_ACTIVE in its list",
    )


def _ago(seconds: float, metrics: Metrics) -> str:
    whole = (metrics.points - 1) * metrics.step_s
    return f"more than {length(whole)}" if seconds > whole else length(seconds)


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 1)

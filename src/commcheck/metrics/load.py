"""From a host's series to four curves: how busy its accelerators and its links were. Pure.

Only accelerators count, instant by instant, that work: those that a job leaves idle say nothing of
it, though a health check ran on all of them a while ago. Only rails count where they are known: a
checkpoint over a storage NIC at line rate is no bottleneck of communication.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from commcheck.lazy import dataclass, regex
from commcheck.metrics.limits import Limits
from commcheck.metrics.reading import Line, Metrics

Curve = tuple[float | None, ...]
Jobs = Mapping[str, tuple[bool, ...]]
"""By accelerator that worked, at which instants it did."""

_NVLINK_GBYTES: Final = (
    (regex(r"\bG?B[23]00\b"), 900.0),
    (regex(r"\bH800\b"), 200.0),
    (regex(r"\b(?:GH[12]00|H200|H20|H100(?![ -](?:PCIe|NVL)))\b"), 450.0),
    (regex(r"\bH100[ -](?:PCIe|NVL)\b"), 300.0),
    (regex(r"\bA800\b"), 200.0),
    (regex(r"\bA100\b"), 300.0),
)
"""NVLink of one GPU in one direction, GB/s: NVIDIA's data sheets."""


@dataclass(frozen=True, slots=True)
class Compute:
    """How busy the accelerators of the job were, on average.

    ``measure`` names what was measured; ``low`` and ``high``: below is standing still, from there
    on is computing, between nobody can tell. ``sure``: False where it only follows from a proxy.
    """

    measure: str
    curve: Curve
    low: float
    high: float
    sure: bool


@dataclass(frozen=True, slots=True)
class Link:
    """How full one kind of link was: the fullest one at each instant, as a share of its rate.

    ``sure``: False where it may be another's traffic, of storage say.
    """

    name: str  # "NIC mlx5_0", "NVLink"
    share: Curve
    gbytes: float  # GB/s, mean of the fullest
    rate_gbytes: float
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Load:
    """What is known of one host.

    ``works``: instants at which an accelerator worked. ``noun``: "GPU" or "NPU". ``lacks``: what
    would have to be exported to know more.
    """

    noun: str
    working: int
    total: int
    works: tuple[bool, ...]
    compute: Compute | None
    nic: Link | None
    lacks: tuple[str, ...]
    silent_s: float
    nvlink: Link | None = None
    tcp_gbytes: float | None = None  # the same both ways, over sockets
    nvlink_gbytes: float | None = None
    pcie_gbytes: float | None = None

    @property
    def links(self) -> tuple[Link, ...]:
        """The links that are known."""
        return tuple(link for link in (self.nic, self.nvlink) if link is not None)


_GPU_SIGNALS: Final = (("sm", 1.0), ("engine", 1.0), ("util_percent", 0.01))
_NPU_SIGNALS: Final = (("npu_percent", 0.01), ("vector_percent", 0.01))


def load_of(
    metrics: Metrics,
    rails: Mapping[str, int] | None,
    rate_gbits: float | None,
    limits: Limits,
    no_rdma: str = "",
) -> Load | None:
    """The load; None where no accelerator of the host is exported.

    ``rails``: HCAs that carry training, ``mlx5_0`` or ``mlx5_0/2``, with the number of their
    physical ports, 0 where that is not known; None where it is not known which they are.
    ``rate_gbits``: the line rate of a port where no exporter tells it. ``no_rdma``: what to do on
    a platform whose network no RDMA port can tell of.
    """
    if metrics.of("npu_percent", "vector_percent"):
        return _npu_load(metrics, rate_gbits, limits)
    if metrics.of(*(name for name, _ in _GPU_SIGNALS)):
        return _gpu_load(metrics, rails, rate_gbits, limits, no_rdma)
    return None


# --- GPUs ---------------------------------------------------------------------------------------


def _gpu_load(
    metrics: Metrics,
    rails: Mapping[str, int] | None,
    rate_gbits: float | None,
    limits: Limits,
    no_rdma: str,
) -> Load:
    activity = _activity(metrics, _GPU_SIGNALS, _gpu)
    jobs = _jobs(activity, limits)
    compute, lacks = _gpu_compute(metrics, jobs, limits)
    nic, problem = _nic(metrics, rails, rate_gbits)
    if nic is None:
        problem = no_rdma or problem
    nvlink = _both_ways(metrics, "nvlink", jobs)
    return Load(
        noun="GPU",
        working=len(jobs),
        total=len(activity),
        works=_works(jobs.values(), metrics.points),
        compute=compute,
        nic=nic,
        nvlink=_nvlink(metrics, nvlink),
        lacks=tuple(filter(None, (lacks, problem))),
        silent_s=metrics.silent_s(metrics.of("sm", "engine", "util_percent")),
        tcp_gbytes=_tcp(metrics),
        nvlink_gbytes=_giga(_mean(nvlink)),
        pcie_gbytes=_giga(_mean(_both_ways(metrics, "pcie", jobs))),
    )


def _gpu(line: Line) -> str:
    """A GPU, or a slice of one, by the labels of dcgm-exporter."""
    return "/".join(filter(None, (line.labels.get("gpu", "?"), line.labels.get("GPU_I_ID", ""))))


def _gpu_compute(metrics: Metrics, jobs: Jobs, limits: Limits) -> tuple[Compute | None, str]:
    """The best measure there is, and what to turn on for a better one."""
    want = "export DCGM_FI_PROF_SM_ACTIVE: it is commented out in dcgm-exporter's list of counters"
    active = _of_jobs(metrics.of("sm"), jobs)
    if active:
        low, high = limits.compute_low, limits.sm_high
        return Compute("SM active", _average(active), low, high, sure=True), ""
    tensor = _of_jobs(metrics.of("tensor"), jobs)
    if tensor and metrics.of("engine"):
        return (
            Compute("tensor cores active", _average(tensor), limits.tensor_low,
                    limits.tensor_high, sure=False),
            want,
        )  # fmt: skip
    return None, f"GPU_UTIL is 100 % also while NCCL only waits; {want}"


def _nic(
    metrics: Metrics, rails: Mapping[str, int] | None, rate_gbits: float | None
) -> tuple[Link | None, str]:
    """The fullest rail at each instant, and why there is none."""
    rates = {
        _port(line): line.seen[-1] for line in metrics.of("nic_rate") if line.seen and line.seen[-1]
    }
    found: dict[str, tuple[float, list[Curve]]] = {}
    others: set[str] = set()
    for name in ("nic_tx", "nic_rx"):
        for line in metrics.of(name):
            port = _port(line)
            rate = _rate(port, rates.get(port), rate_gbits, (rails or {}).get(port, 0))
            if rails is not None and port not in rails:
                others.add(port)
            elif rate and line.seen:
                found.setdefault(port, (rate, []))[1].append(line.values)
    if not found:
        return None, _no_nic(metrics, rails, others)
    shares = {
        port: tuple(None if v is None else v / rate for v in _highest(both))
        for port, (rate, both) in found.items()
    }
    fullest = max(sorted(shares), key=lambda port: _mean([shares[port]]) or 0.0)
    rate = found[fullest][0]
    means = [_mean([share]) or 0.0 for share in shares.values()]
    curve = _highest(list(shares.values()))
    # Rails of one job are alike; one full port among idle ones may as well write a checkpoint.
    sure = rails is not None or min(means) > max(means) / 2
    lacks = "" if sure else "which NICs carry training? name them in commcheck_nics"
    return Link(f"NIC {fullest}", curve, max(means) * rate / 1e9, rate / 1e9, sure), lacks


_BOND: Final = regex(r"bond", re.IGNORECASE)


def _rate(port: str, told: float | None, declared_gbits: float | None, ports: int) -> float:
    """Bytes/s that a rail can carry; 0 where nobody tells.

    A bond of a card's ports (RoCE LAG, mlx5_bond_0) counts what all of them carry and tells the
    rate of one (deepseek-ai/DeepEP pull request 671: 200 Gb/s told, 372 carried). What is declared
    is that of one, too.
    """
    ports = ports or (2 if _BOND.search(port) else 1)
    declared = (declared_gbits or 0) * 1e9 / 8
    return (declared or told or 0) * ports if ports > 1 else told or declared


def _no_nic(metrics: Metrics, known: Collection[str] | None, others: Collection[str]) -> str:
    """What to turn on where no rail has both traffic and a rate."""
    if metrics.of("nic_tx", "nic_rx"):
        if others and known is not None:
            return (
                f"node_exporter has no series of {', '.join(sorted(known)) or 'any rail'}, only of "
                f"{', '.join(sorted(others)[:8])}: name the training NICs in commcheck_nics"
            )
        return "set commcheck_line_rate_gbits: node_exporter does not tell the NICs' rate"
    if metrics.of("nic_rate"):
        return (
            "have node_exporter scraped every two minutes or more often: a rate takes two samples "
            "in five minutes"
        )
    return metrics.elsewhere("NICs") or (
        "run node_exporter with its infiniband collector on the host"
    )


def _port(line: Line) -> str:
    """A port as rails are labelled."""
    device, port = line.labels.get("device", "?"), line.labels.get("port", "1")
    return device if port == "1" else f"{device}/{port}"


def _nvlink(metrics: Metrics, curves: Sequence[Curve]) -> Link | None:
    """NVLink as a share of what the GPU's model can carry; None where that is not known."""
    names = {line.labels.get("modelName", "") for line in metrics.of("nvlink_tx", "nvlink_rx")}
    rates = {rate for name in names for pattern, rate in _NVLINK_GBYTES if pattern.search(name)}
    mean = _mean(curves)
    if len(rates) != 1 or mean is None:
        return None
    (rate,) = rates
    share = tuple(None if v is None else v / (rate * 1e9) for v in _average(curves))
    return Link("NVLink", share, mean / 1e9, rate)


def _both_ways(metrics: Metrics, name: str, jobs: Jobs) -> list[Curve]:
    """For each working GPU the busier direction."""
    return _of_jobs(metrics.of(f"{name}_tx", f"{name}_rx"), jobs)


def _of_jobs(lines: Iterable[Line], jobs: Jobs) -> list[Curve]:
    """A curve for each GPU of a job while it works: of several series the highest."""
    by_gpu: dict[str, list[Curve]] = {}
    for line in lines:
        if _gpu(line) in jobs:
            by_gpu.setdefault(_gpu(line), []).append(line.values)
    return [_while(jobs[name], _highest(curves)) for name, curves in by_gpu.items()]


def _tcp(metrics: Metrics) -> float | None:
    """GB/s that a netdev carries in both directions: datasets only come, checkpoints only go."""
    tx, rx = (
        {line.labels.get("device", "?"): _mean([line.values]) or 0.0 for line in metrics.of(name)}
        for name in ("net_tx", "net_rx")
    )
    return max((min(tx[name], rx[name]) / 1e9 for name in tx.keys() & rx.keys()), default=None)


# --- NPUs ---------------------------------------------------------------------------------------


def _npu_load(metrics: Metrics, rate_gbits: float | None, limits: Limits) -> Load:
    """Each NPU has a RoCE port of its own, which only NPUs use: its traffic is work, too."""
    activity = _activity(metrics, _NPU_SIGNALS, _npu)
    rates = {_npu(line): line.seen[-1] for line in metrics.of("npu_rate_mbits") if line.seen}
    ports: dict[str, list[Curve]] = {}
    for line in metrics.of("npu_tx_mbytes", "npu_rx_mbytes"):
        rate = (rates.get(_npu(line)) or (rate_gbits or 0) * 1e3) / 8  # MB/s
        if rate and line.seen:
            share = tuple(None if v is None else v / rate for v in line.values)
            ports.setdefault(_npu(line), []).append(share)
    shares = {name: _highest(both) for name, both in ports.items()}
    work = {name: _highest([curve, *filter(None, [shares.get(name)])])
            for name, curve in activity.items()}  # fmt: skip
    jobs = _jobs(work, limits)
    nic, lacks = None, ""
    mine = {name: shares[name] for name in sorted(jobs.keys() & shares.keys())}
    if mine:
        fullest = max(mine, key=lambda name: _mean([mine[name]]) or 0.0)
        rate = (rates.get(fullest) or (rate_gbits or 0) * 1e3) / 8e3
        mean = (_mean([mine[fullest]]) or 0.0) * rate
        nic = Link(f"NIC of NPU {fullest}", _highest(list(mine.values())), mean, rate)
    elif metrics.of("npu_tx_mbytes"):
        lacks = "set commcheck_line_rate_gbits: npu-exporter does not tell the ports' rate"
    else:
        lacks = "npu-exporter has no npu_chip_info_bandwidth_tx: does hccn_tool work there?"
    curve = _average([_while(jobs[name], activity[name]) for name in sorted(jobs)])
    low = limits.compute_low
    return Load(
        noun="NPU",
        working=len(jobs),
        total=len(activity),
        works=_works(jobs.values(), metrics.points),
        compute=Compute("AI cores active", curve, low, low, sure=True) if jobs else None,
        nic=nic,
        lacks=(lacks,) if lacks else (),
        silent_s=metrics.silent_s(metrics.of("npu_percent", "vector_percent")),
    )


def _npu(line: Line) -> str:
    return line.labels.get("id", "?")


# --- curves -------------------------------------------------------------------------------------


def _activity(
    metrics: Metrics, signals: Iterable[tuple[str, float]], name_of: Callable[[Line], str]
) -> dict[str, Curve]:
    """By accelerator the highest of all that tells that it works, 0 to 1."""
    found: dict[str, list[Curve]] = {}
    for name, unit in signals:
        for line in metrics.of(name):
            curve = tuple(None if value is None else value * unit for value in line.values)
            found.setdefault(name_of(line), []).append(curve)
    return {name: _highest(curves) for name, curves in found.items()}


def _jobs(activity: Mapping[str, Curve], limits: Limits) -> Jobs:
    """The accelerators that worked, and when."""
    jobs = {
        name: tuple(value is not None and value > limits.idle for value in curve)
        for name, curve in activity.items()
    }
    return {name: works for name, works in jobs.items() if any(works)}


def _works(jobs: Iterable[tuple[bool, ...]], points: int) -> tuple[bool, ...]:
    return tuple(map(any, zip(*jobs, strict=True))) or (False,) * points


def _while(works: Iterable[bool], curve: Curve) -> Curve:
    """The curve at the instants at which its accelerator works."""
    return tuple(v if at_work else None for at_work, v in zip(works, curve, strict=True))


def _highest(curves: Sequence[Curve]) -> Curve:
    return tuple(
        max((value for value in at if value is not None), default=None)
        for at in zip(*curves, strict=True)
    )


def _average(curves: Sequence[Curve]) -> Curve:
    return tuple(
        sum(there) / len(there) if (there := [v for v in at if v is not None]) else None
        for at in zip(*curves, strict=True)
    )


def _mean(curves: Sequence[Curve]) -> float | None:
    values = [value for curve in curves for value in curve if value is not None]
    return sum(values) / len(values) if values else None


def _giga(value: float | None) -> float | None:
    return None if value is None else round(value / 1e9, 2)

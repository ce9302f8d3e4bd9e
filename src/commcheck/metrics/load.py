"""From a host's series to four curves: how busy its accelerators and its links were. Pure.

Only accelerators count, instant by instant, that work: those that a job leaves idle say nothing of
it, though a health check ran on all of them a while ago. Only rails count where they are known: a
checkpoint over a storage NIC at line rate is no bottleneck of communication.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from commcheck.lazy import dataclass, regex
from commcheck.metrics.curves import Curve, average, highest, mean
from commcheck.metrics.limits import Limits
from commcheck.metrics.nics import Link, fullest
from commcheck.metrics.reading import Line, Metrics

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
    nic, problem = fullest(metrics, rails, rate_gbits)
    if nic is None and not metrics.of("nic_tx", "nic_rx"):
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
        nvlink_gbytes=_giga(mean(nvlink)),
        pcie_gbytes=_giga(mean(_both_ways(metrics, "pcie", jobs))),
    )


def _gpu(line: Line) -> str:
    """A GPU, or a slice of one, by the labels of dcgm-exporter."""
    return "/".join(filter(None, (line.gpu, line.labels.get("GPU_I_ID", ""))))


def _gpu_compute(metrics: Metrics, jobs: Jobs, limits: Limits) -> tuple[Compute | None, str]:
    """The best measure there is, and what to turn on for a better one."""
    want = "export DCGM_FI_PROF_SM_ACTIVE: it is commented out in dcgm-exporter's list of counters"
    stuck = _stuck(metrics, "sm" if metrics.of("sm") else "engine", limits)
    never = (False,) * metrics.points
    seen = {
        gpu: tuple(at and not bad for at, bad in zip(works, stuck.get(gpu, never), strict=True))
        for gpu, works in jobs.items()
    }
    if seen != jobs:
        want = (
            "restart dcgm-exporter: its profiling fields stand at 0 while GPU_UTIL says that "
            "kernels run (NVIDIA/dcgm-exporter issue 662)"
        )
    active = _of_jobs(metrics.of("sm"), seen)
    if active:
        low, high = limits.compute_low, limits.sm_high
        lacks = want if seen != jobs else ""
        return Compute("SM active", average(active), low, high, sure=True), lacks
    tensor = _of_jobs(metrics.of("tensor"), seen)
    if tensor and metrics.of("engine"):
        return (
            Compute("tensor cores active", average(tensor), limits.tensor_low,
                    limits.tensor_high, sure=False),
            want,
        )  # fmt: skip
    return None, f"GPU_UTIL is 100 % also while NCCL only waits; {want}"


def _stuck(metrics: Metrics, name: str, limits: Limits) -> Jobs:
    """By GPU the instants at which a profiling field is exactly 0 and cannot be: a kernel ran."""
    told = _activity(metrics, ((name, 1.0),), _gpu)
    util = _activity(metrics, (("util_percent", 0.01),), _gpu)
    return {
        gpu: tuple(
            value == 0.0 and busy is not None and busy >= limits.util_high
            for value, busy in zip(curve, util[gpu], strict=True)
        )
        for gpu, curve in told.items()
        if gpu in util
    }


def _nvlink(metrics: Metrics, curves: Sequence[Curve]) -> Link | None:
    """NVLink as a share of what the GPU's model can carry; None where that is not known."""
    names = {line.labels.get("modelName", "") for line in metrics.of("nvlink_tx", "nvlink_rx")}
    rates = {rate for name in names for pattern, rate in _NVLINK_GBYTES if pattern.search(name)}
    carried = mean(curves)
    if len(rates) != 1 or carried is None:
        return None
    (rate,) = rates
    share = tuple(None if v is None else v / (rate * 1e9) for v in average(curves))
    return Link("NVLink", share, carried / 1e9, rate)


def _both_ways(metrics: Metrics, name: str, jobs: Jobs) -> list[Curve]:
    """For each working GPU the busier direction."""
    return _of_jobs(metrics.of(f"{name}_tx", f"{name}_rx"), jobs)


def _of_jobs(lines: Iterable[Line], jobs: Jobs) -> list[Curve]:
    """A curve for each GPU of a job while it works: of several series the highest."""
    by_gpu: dict[str, list[Curve]] = {}
    for line in lines:
        if _gpu(line) in jobs:
            by_gpu.setdefault(_gpu(line), []).append(line.values)
    return [_while(jobs[name], highest(curves)) for name, curves in by_gpu.items()]


def _tcp(metrics: Metrics) -> float | None:
    """GB/s that a netdev carries in both directions: datasets only come, checkpoints only go."""
    tx, rx = (
        {line.labels.get("device", "?"): mean([line.values]) or 0.0 for line in metrics.of(name)}
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
    shares = {name: highest(both) for name, both in ports.items()}
    work = {name: highest([curve, *filter(None, [shares.get(name)])])
            for name, curve in activity.items()}  # fmt: skip
    jobs = _jobs(work, limits)
    nic, lacks = None, ""
    mine = {name: shares[name] for name in sorted(jobs.keys() & shares.keys())}
    if mine:
        most = max(mine, key=lambda name: mean([mine[name]]) or 0.0)
        rate = (rates.get(most) or (rate_gbits or 0) * 1e3) / 8e3
        carried = (mean([mine[most]]) or 0.0) * rate
        nic = Link(f"NIC of NPU {most}", highest(list(mine.values())), carried, rate)
    elif metrics.of("npu_tx_mbytes"):
        lacks = "set commcheck_line_rate_gbits: npu-exporter does not tell the ports' rate"
    else:
        lacks = "npu-exporter has no npu_chip_info_bandwidth_tx: does hccn_tool work there?"
    curve = average([_while(jobs[name], activity[name]) for name in sorted(jobs)])
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
    return {name: highest(curves) for name, curves in found.items()}


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


def _giga(value: float | None) -> float | None:
    return None if value is None else round(value / 1e9, 2)

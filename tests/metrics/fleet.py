"""An invented fleet as its exporters would tell it: one host for each thing that can be so."""

from __future__ import annotations

from collections.abc import Mapping

from tests.metrics.prometheus import Metrics

GB = 1e9
SCRAPE_S = 30.0
WINDOW_MIN = 40.0


def gpu_host(
    metrics: Metrics,
    name: str,
    gauges: Mapping[str, float],
    nics: Mapping[str, float] | None = None,
    *,
    tcp: float = 0.0,
    until_min: float = 0.0,
) -> None:
    """Two GPUs with constant gauges, NICs of 400 Gb/s that send so many bytes/s, and a netdev."""
    times = list(metrics.times(WINDOW_MIN, SCRAPE_S, until_min))
    for gpu in ("0", "1"):
        for metric, value in gauges.items():
            metrics.add(
                metric,
                {"gpu": gpu, "Hostname": name, "instance": f"{name}:9400", "modelName": "H100"},
                ((when, value) for when in times),
            )
    node = {"instance": f"{name}:9100"}
    for device, rate in (nics or {}).items():
        labels = {**node, "device": device, "port": "1"}
        metrics.add("node_infiniband_rate_bytes_per_second", labels, ((t, 50 * GB) for t in times))
        for way, part in (("transmitted", 1.0), ("received", 0.98)):
            metrics.add(
                f"node_infiniband_port_data_{way}_bytes_total",
                labels,
                ((when, float(int(rate * part * n * SCRAPE_S))) for n, when in enumerate(times)),
            )
    for way in ("transmit", "receive"):
        metrics.add(
            f"node_network_{way}_bytes_total",
            {**node, "device": "eth0"},
            ((when, tcp * n * SCRAPE_S) for n, when in enumerate(times)),
        )


def npu_host(metrics: Metrics, name: str, percent: float, mbytes: float) -> None:
    """Two NPUs with a port of 200 Gb/s each."""
    for npu in ("0", "1"):
        labels = {"id": npu, "model_name": "910B", "instance": f"{name}:8082"}
        for metric, value in (
            ("npu_chip_info_utilization", percent),
            ("npu_chip_info_bandwidth_tx", mbytes),
            ("npu_chip_info_bandwidth_rx", mbytes),
            ("npu_chip_link_speed", 200_000.0),
        ):
            metrics.add(metric, labels, ((t, value) for t in metrics.times(WINDOW_MIN, SCRAPE_S)))


def day(
    metrics: Metrics, name: str, metric: str, steps: Mapping[float, float], **labels: str
) -> None:
    """A counter or code over a day by five minutes: its value from so many hours ago on."""

    def at(when: float) -> float:
        ago_h = (metrics.now - when) / 3600
        return next((value for hours, value in sorted(steps.items()) if ago_h <= hours), 0.0)

    samples = [(when, at(when)) for when in metrics.times(24 * 60, 300.0)]
    metrics.add(metric, {"instance": f"{name}:9100", **labels}, samples)


SM = "DCGM_FI_PROF_SM_ACTIVE"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
UTIL = "DCGM_FI_DEV_GPU_UTIL"


def fleet(now: float) -> Metrics:
    """All of them."""
    metrics = Metrics(now)
    quick, slow = 46 * GB, 5 * GB
    gpu_host(metrics, "bound", {SM: 0.12, UTIL: 100.0}, {"mlx5_0": quick, "mlx5_1": quick})
    gpu_host(metrics, "overlapped", {SM: 0.85, UTIL: 100.0}, {"mlx5_0": quick})
    gpu_host(metrics, "computing", {SM: 0.83, UTIL: 100.0}, {"mlx5_0": slow})
    gpu_host(metrics, "waiting", {SM: 0.10, UTIL: 100.0}, {"mlx5_0": slow})
    gpu_host(metrics, "tcp", {SM: 0.10, UTIL: 100.0}, {"mlx5_0": 0.0}, tcp=1.1 * GB)
    gpu_host(metrics, "idle", {SM: 0.0, UTIL: 0.0}, {"mlx5_0": 0.0})
    gpu_host(metrics, "dead", {SM: 0.83, UTIL: 100.0}, {"mlx5_0": slow}, until_min=15)
    gpu_host(metrics, "storage", {SM: 0.12, UTIL: 100.0}, {"mlx5_0": slow, "mlx5_9": quick})
    gpu_host(metrics, "only-util", {UTIL: 100.0}, {"mlx5_0": quick})
    gpu_host(metrics, "tensor", {ENGINE: 0.97, TENSOR: 0.01, UTIL: 100.0}, {"mlx5_0": quick})
    gpu_host(metrics, "no-nic", {SM: 0.12, UTIL: 100.0})
    gpu_host(metrics, "192.0.2.7", {}, {"mlx5_0": quick})  # of no-nic: its node_exporter
    npu_host(metrics, "npu-bound", 6.0, 23_000.0)
    npu_host(metrics, "npu-computing", 71.0, 4_000.0)
    for name in ("bound", "overlapped", "computing"):
        for device in ("mlx5_0", "mlx5_1"):
            on = {"device": device, "port": "1"}
            down = {12.0: 8.0} if (name, device) == ("bound", "mlx5_1") else {}
            day(metrics, name, "node_infiniband_link_downed_total", down, **on)
            day(metrics, name, "node_infiniband_symbol_error_total", {}, **on)
    lost = {n / 12: 5000.0 + 120 * (18 - n) for n in range(1, 18)}
    day(metrics, "overlapped", "node_infiniband_local_ack_timeout_errors_total", lost,
        device="mlx5_0", port="1")  # fmt: skip
    day(metrics, "computing", "DCGM_FI_DEV_XID_ERRORS", {3.0: 79.0}, gpu="1", Hostname="computing")
    day(metrics, "bound", "DCGM_FI_DEV_XID_ERRORS", {3.0: 31.0}, gpu="0", Hostname="bound")
    return metrics

"""Shares of metrics made by hand: constant curves on a grid of half an hour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commcheck.metrics.reading import Line, Metrics

POINTS = 31
Value = float | Sequence[float | None]


def curve(value: Value) -> tuple[float | None, ...]:
    return (float(value),) * POINTS if isinstance(value, int | float) else tuple(value)


def share(lines: Mapping[str, Mapping[str, Value]], **more: object) -> Metrics:
    """``{"sm": {"0": 0.5}, "nic_tx": {"mlx5_0": 46e9}}``: by query, by GPU, NIC or NPU."""
    labels = {"nic": "device", "net": "device", "npu": "id", "vector": "id"}
    made = {
        query: tuple(
            Line(
                {labels.get(query.partition("_")[0], "gpu"): name, "modelName": "NVIDIA H100"},
                curve(value),
            )
            for name, value in by_name.items()
        )
        for query, by_name in lines.items()
    }
    return Metrics("http://prom:9090", ("gpu-01",), 0.0, 60.0, POINTS, made, **more)  # type: ignore[arg-type] # fields by name

"""The Xid codes of GPUs as dcgm-exporter told them: a gauge of the last code, not a count. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from commcheck.lazy import dataclass
from commcheck.metrics.reading import Line, Metrics


@dataclass(frozen=True, slots=True)
class Code:
    """A code of a GPU. ``ago_s``: since it came up; None where it was there from the start."""

    gpu: str
    code: int
    ago_s: float | None


def codes(metrics: Metrics) -> Iterator[Code]:
    """Every code that a GPU showed and that came up in the window, and the one it began with.

    The newest of a GPU comes first. 0 says that there was none since the exporter's start.
    """
    found = [each for line in metrics.of("xid") for each in _of_line(line, metrics)]
    yield from sorted(found, key=lambda each: each.ago_s if each.ago_s is not None else 1e12)


def _of_line(line: Line, metrics: Metrics) -> Iterator[Code]:
    before: float | None = None
    for place, value in enumerate(line.values):
        if value is None or value == before:
            continue
        if value > 0:
            ago = (metrics.points - 1 - place) * metrics.step_s
            yield Code(line.labels.get("gpu", "?"), int(value), None if before is None else ago)
        before = value

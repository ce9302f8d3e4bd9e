"""The Xid codes of GPUs as dcgm-exporter told them: a gauge of the last code, not a count. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from commcheck.lazy import dataclass
from commcheck.metrics.reading import Line, Metrics


@dataclass(frozen=True, slots=True)
class Code:
    """A code of a GPU. ``ago_s``: since it came up; None where it was there from the start.

    ``over``: later none was shown, which takes a new start of the exporter, as after a reboot.
    """

    gpu: str
    code: int
    ago_s: float | None
    over: bool = False


def codes(metrics: Metrics) -> Iterator[Code]:
    """Every code that a GPU showed and that came up in the window, and the one it began with.

    The newest of a GPU comes first. 0 says that there was none since the exporter's start.
    """
    by_gpu: dict[str, list[Line]] = {}
    for line in metrics.of("xid", "xid_most"):
        by_gpu.setdefault(line.gpu, []).append(line)
    watched = _first([line for lines in metrics.lines.values() for line in lines])
    found = [
        each for gpu, lines in by_gpu.items() for each in _of_gpu(gpu, lines, watched, metrics)
    ]
    yield from sorted(found, key=lambda each: each.ago_s if each.ago_s is not None else 1e12)


def _of_gpu(gpu: str, lines: Sequence[Line], watched: int, metrics: Metrics) -> Iterator[Code]:
    """A GPU has many series: a new one with every code (its label ``err_code``, dcgm-exporter
    3.3.6) and every pod, and one for each slice. Some releases have none before the first code:
    where the host was watched earlier, that code came up then.
    """
    first = _first(lines)
    shown = [
        {value for line in lines if (value := line.values[place]) is not None}
        for place in range(metrics.points)
    ]
    zero = max((place for place, each in enumerate(shown) if each == {0.0}), default=-1)
    before: set[float] | None = None if first <= watched else {0.0}
    for place in range(first, metrics.points):
        for code in sorted(shown[place] - (before or set())):
            if code > 0:
                ago = (metrics.points - 1 - place) * metrics.step_s
                yield Code(gpu, int(code), None if before is None else ago, over=place < zero)
        before = shown[place] or before


def _first(lines: Iterable[Line]) -> int:
    """The first instant at which one of the series has a sample."""
    return min(
        (place for line in lines for place, v in enumerate(line.values) if v is not None), default=0
    )

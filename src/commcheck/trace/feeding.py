"""When the compute stream waits for the host: nothing on the device holds the next kernel back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from commcheck.lazy import dataclass
from commcheck.trace.intervals import Span, union
from commcheck.trace.names import Kind
from commcheck.trace.sets import Row
from commcheck.trace.store import Device, Trace

LATENCY_NS: Final = 10_000
"""A kernel that nothing holds begins at most so long after its launch returned. Source: NVIDIA,
Understanding the Visualization of Overhead and Latency in Nsight Systems: 20 us from the begin of
the call to that of the kernel, half of it the call."""

PAUSE_NS: Final = 1_000_000
"""In a longer gap the host did something else than launching the next kernel. Source: commcheck; an
eager operator of PyTorch takes tens of microseconds on the host, a slow one some hundreds."""


def inputs_of(trace: Trace) -> list[Span]:
    """When the training thread waits for its next batch; other threads may fetch ahead."""
    threads = {step.thread for step in trace.steps}
    return union((at.start, at.end) for at in trace.inputs if not threads or at.thread in threads)


@dataclass(frozen=True, slots=True)
class Waits:
    """What the busiest compute stream of a window waits for the host.

    ``spans``: nothing but the host holds the next kernel; the first may begin before the window.
    ``gap_ns``: the gaps between its kernels that the next one's launch ended in, whole.
    """

    spans: list[Span]
    gap_ns: int


class Feeding:
    """The waits of one device, window by window in order of time."""

    def __init__(self, trace: Trace, device: Device) -> None:
        self._stream_of = [code.stream if code.kind is Kind.COMPUTE else "" for code in trace.codes]
        self._launch_end = device.launch_end
        self._last = ("", 0)  # the busiest stream of the window before, and where it ended
        self._held: list[Span] = []  # what ran on from there

    def waits(self, rows: Sequence[Row], comm: list[Span], mem: list[Span]) -> Waits:
        """Gaps on the busiest compute stream whose later kernel was launched only within them.

        ``rows``: the window's events in the order of their begin; ``comm`` and ``mem``: what the
        device communicates and copies in it.

        A wait lasts until the launch call returned: its end counts, not its begin, since a call
        that is under way has not queued anything yet. What the device did meanwhile and ended
        before the kernel began, the kernel or the host itself may have waited for: it is no wait
        for the host. Under a collective that goes on, the kernel did not wait for that.
        """
        streams: dict[str, list[Row]] = defaultdict(list)
        stream_of = self._stream_of
        for row in rows:
            streams[stream_of[row[2]]].append(row)
        streams.pop("", None)
        if not streams:
            return Waits([], 0)
        busiest = max(streams, key=lambda name: sum(row[1] - row[0] for row in streams[name]))
        mine = streams[busiest]
        launch_end = self._launch_end
        before = self._last[1] if self._last[0] == busiest else mine[0][0]
        gaps = []
        for start, end, _, index in mine:
            if start > before and launch_end[index] > before:
                gaps.append((before, min(start, launch_end[index] + LATENCY_NS), start))
            if end > before:
                before = end
        held = union([*self._held, *comm, *mem])
        self._last = (busiest, before)
        self._held = [span for span in held if span[1] > before]
        within = sum(start - begin for begin, _, start in gaps if begin >= mine[0][1])
        return Waits(_without(gaps, held), within)


def _without(gaps: Sequence[tuple[int, int, int]], held: Sequence[Span]) -> list[Span]:
    """Gaps (begin, end, begin of the kernel) without what ended within them."""
    rest = []
    first = 0
    for begin, until, start in gaps:
        while first < len(held) and held[first][1] <= begin:
            first += 1
        at, place = begin, first
        while place < len(held) and held[place][1] <= start:
            if at < (end := min(held[place][0], until)):
                rest.append((at, end))
            at = max(at, held[place][1])
            place += 1
        if at < until:
            rest.append((at, until))
    return rest

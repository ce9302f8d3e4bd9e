"""A training step without its communication: when gradients are ready, and how large they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Literal

from commcheck.lazy import dataclass

Source = Literal["trace", "model", "model and trace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One rank's step as it would be if the network were infinitely fast.

    ``sizes`` in bytes and ``ready_us`` since the begin of the backward pass, both in ready order
    (``ready_us`` ascending). ``before_us``: forward; ``backward_us``; ``after_us``: optimizer and
    the rest. ``element_bytes``: of a gradient.
    """

    name: str
    source: Source
    sizes: tuple[float, ...]
    ready_us: tuple[float, ...]
    before_us: float
    backward_us: float
    after_us: float
    element_bytes: int = 4
    notes: tuple[str, ...] = ()

    @property
    def sums(self) -> tuple[float, ...]:
        """Bytes before each gradient, and of all."""
        return tuple(accumulate(self.sizes, initial=0.0))

    @property
    def total_bytes(self) -> float:
        """Of all gradients."""
        return sum(self.sizes)

    @property
    def alone_us(self) -> float:
        """The step if communication took no time."""
        return self.before_us + self.backward_us + self.after_us

    def slower(self, factor: float) -> Work:
        """The same with a backward pass longer by ``factor``: how sure an advice is."""
        return replace(
            self,
            ready_us=tuple(each * factor for each in self.ready_us),
            backward_us=self.backward_us * factor,
        )

    def with_copies(self, us_per_byte: float) -> Work:
        """Each gradient is copied into its bucket and back, which the backward pass waits for."""
        if not us_per_byte:
            return self
        sums = self.sums[1:]
        return replace(
            self,
            ready_us=tuple(
                at + us_per_byte * done for at, done in zip(self.ready_us, sums, strict=True)
            ),
            backward_us=self.backward_us + us_per_byte * sums[-1],
        )


def in_ready_order(
    gradients: Sequence[tuple[float, float]],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Sizes and ready times from (bytes, us) in any order."""
    ordered = sorted(gradients, key=lambda each: each[1])
    return tuple(size for size, _ in ordered), tuple(at for _, at in ordered)


PIECES_MOST = 64
PIECE_BYTES = 256 << 10
"""A traced bucket is split into so many pieces at most, none smaller than this."""


def split(
    buckets: Sequence[tuple[float, float]],
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[int, ...]]:
    """Pieces for buckets of (bytes, ready us): sizes, ready times, and where the buckets end.

    Within a bucket they get ready evenly.

    A trace shows buckets and not the gradients within them, and smaller buckets could start
    earlier. The first bucket began to fill as fast before its time as the later ones did, though
    not before a third of the way to the last: a backward pass takes twice a forward.
    """
    total = sum(size for size, _ in buckets)
    first_size, first_at = buckets[0]
    last_at = buckets[-1][1]
    rate = (total - first_size) / (last_at - first_at) if last_at > first_at else 0.0
    begin = min(first_at, last_at / 3)
    if rate:
        begin = max(begin, first_at - first_size / rate)
    sizes: list[float] = []
    ready: list[float] = []
    ends: list[int] = []
    for (_, before), (size, at) in pairwise([(0.0, begin), *buckets]):
        count = max(1, min(PIECES_MOST, int(size // PIECE_BYTES)))
        for number in range(1, count + 1):
            sizes.append(size / count)
            ready.append(before + (at - before) * number / count)
        ends.append(len(sizes))
    return tuple(sizes), tuple(ready), tuple(ends)


def laid_over(work: Work, sizes: Sequence[float]) -> Work:
    """The work of a trace with the gradients' real sizes, given in ready order.

    A gradient is ready when the trace has as many bytes ready. Raises ``ValueError`` where the
    sizes are of another model.
    """
    total = sum(sizes)
    factor = work.total_bytes / total
    if not 0.9 <= factor <= 1.1:
        raise ValueError(
            f"the gradients of the description are {total / 1e6:.1f} MB, and the trace moves "
            f"{work.total_bytes / 1e6:.1f} MB"
        )
    sums = work.sums
    at, done = 0, 0.0
    ready = []
    for size in sizes:
        done += size * factor
        while at + 1 < len(work.sizes) and sums[at + 1] < done - 1e-6:
            at += 1
        before = work.ready_us[at - 1] if at else work.ready_us[0]
        share = min(1.0, (done - sums[at]) / work.sizes[at])
        ready.append(before + (work.ready_us[at] - before) * share)
    return replace(
        work,
        source="model and trace",
        sizes=tuple(float(size) * factor for size in sizes),
        ready_us=tuple(ready),
    )

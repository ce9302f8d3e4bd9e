"""How frameworks cut gradients into buckets, and how much memory that takes.

Sources: PyTorch 2.13 torch/csrc/distributed/c10d/reducer.cpp (a bucket closes once its size reaches
the cap), DeepSpeed runtime/zero/stage_1_and_2.py (it is flushed before a gradient that would exceed
the size), Megatron-LM core/distributed/param_and_grad_buffer.py (as PyTorch, in elements).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import sub
from typing import Final

from commcheck.lazy import dataclass

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Framework:
    """The rule of one framework.

    ``in_elements``: its unit; else MiB. ``closes_before``: a bucket is flushed before the gradient
    that would exceed it. ``buffers``: bytes of memory per byte of bucket. ``grid``: sizes to try,
    in its unit, ascending.
    """

    name: str
    title: str
    setting: str
    in_elements: bool
    closes_before: bool
    buffers: float
    grid: tuple[float, ...]

    def bytes_of(self, value: float, element_bytes: int) -> float:
        """A value of the setting, in bytes."""
        return value * (element_bytes if self.in_elements else MIB)

    def told(self, value: float) -> str:
        """A value as it is set: ``bucket_cap_mb=25``."""
        number = f"{value:.0f}" if self.in_elements else f"{value:g}"
        return self.setting.format(number)


_MIB_GRID: Final = (
    *(round(part * 2.0**power, 4) for power in range(-2, 10) for part in (1, 1.25, 1.5, 1.75)),
    1024.0,
)
_DECADE: Final = (1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.4, 8)
_ELEMENT_GRID: Final = (*(part * 10.0**power for power in range(5, 9) for part in _DECADE), 1e9)

DDP: Final = Framework("ddp", "DDP", "bucket_cap_mb={}", False, False, 0.0, _MIB_GRID)
DEEPSPEED: Final = Framework(
    "deepspeed", "DeepSpeed", '"reduce_bucket_size": {}', True, True, 4.5, _ELEMENT_GRID
)
"""``buffers``: DeepSpeed's documentation counts 4.5 x the bucket with overlap_comm."""
MEGATRON: Final = Framework(
    "megatron", "Megatron", "--ddp-bucket-size {}", True, False, 0.0, _ELEMENT_GRID
)
FRAMEWORKS: Final = {each.name: each for each in (DDP, DEEPSPEED, MEGATRON)}

DDP_FIRST_BYTES: Final = 1 * MIB
DDP_DEFAULT_MIB: Final = 25.0
DEEPSPEED_DEFAULT: Final = 5e8
MEGATRON_LEAST: Final = 40e6
MEGATRON_PER_RANK: Final = 1e6
"""Defaults: DDP's bucket_cap_mb=None is 1 MiB first, then 25; Megatron's is the larger of 40e6 and
1e6 x data-parallel size."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where buckets end: one past the last gradient of each, ascending.

    ``until_bytes``: caps up to here (for ``closes_before`` below here) give the same buckets.
    """

    ends: tuple[int, ...]
    until_bytes: float


def cut(
    sums: Sequence[float], cap_bytes: float, *, before: bool, first_bytes: float | None = None
) -> Cut:
    """Cut gradients into buckets.

    ``sums``: bytes of all gradients before each, in ready order, and of all: one more than there
    are gradients. ``before``: a bucket is flushed before the gradient that would exceed the cap.
    ``first_bytes``: cap of the first bucket where it has one of its own.
    """
    count = len(sums) - 1
    ends: list[int] = []
    start, cap = 0, cap_bytes if first_bytes is None else first_bytes
    while start < count:
        if before:
            end = bisect_right(sums, sums[start] + cap, start + 1) - 1
            start = end if end > start else start + 1  # one larger than a bucket goes alone
        else:
            start = bisect_left(sums, sums[start] + cap, start + 1)
        ends.append(start)
        cap = cap_bytes
    full = len(ends) - 1
    if start > count:  # what is left does not fill a bucket
        ends[-1] = count
    elif not before:
        full += 1
    marks = [0.0, *(sums[end + 1 if before else end] for end in ends[:full])]
    starts = [0.0, *(sums[end] for end in ends)] if before else marks
    until = min(map(sub, marks[1:], starts), default=float("inf"))
    return Cut(tuple(ends), until)

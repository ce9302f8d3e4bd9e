"""Sets of half-open intervals in integer nanoseconds: sorted, disjoint, never touching.

Every function but ``union`` takes and gives such sets; ``union`` makes one of any spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Span = tuple[int, int]
"""``(start, end)``, half open: ``start`` is inside, ``end`` is not."""


def union(spans: Iterable[Span]) -> list[Span]:
    """The set that the spans cover. Empty and backward spans cover nothing."""
    merged: list[Span] = []
    first = last = 0
    started = False
    for start, end in sorted(spans):
        if end <= start:
            continue
        if started and start <= last:
            if end > last:
                last = end
            continue
        if started:
            merged.append((first, last))
        first, last, started = start, end, True
    if started:
        merged.append((first, last))
    return merged


def length(spans: Iterable[Span]) -> int:
    """How many nanoseconds a set covers."""
    return sum(end - start for start, end in spans)


def intersect(left: Sequence[Span], right: Sequence[Span]) -> list[Span]:
    """What lies in both sets."""
    common = []
    i = j = 0
    while i < len(left) and j < len(right):
        start = max(left[i][0], right[j][0])
        end = min(left[i][1], right[j][1])
        if start < end:
            common.append((start, end))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return common


def subtract(left: Sequence[Span], right: Sequence[Span]) -> list[Span]:
    """What lies in ``left`` and not in ``right``."""
    rest = []
    j = 0
    for start, end in left:
        while j < len(right) and right[j][1] <= start:
            j += 1
        at, k = start, j
        while k < len(right) and right[k][0] < end:
            if right[k][0] > at:
                rest.append((at, right[k][0]))
            at = right[k][1]
            k += 1
        if at < end:
            rest.append((at, end))
    return rest


def clip(spans: Iterable[Span], start: int, end: int) -> list[Span]:
    """What lies between ``start`` and ``end``."""
    return [(max(a, start), min(b, end)) for a, b in spans if a < end and b > start]


def longest(spans: Iterable[Span]) -> int:
    """The length of the longest interval; 0 where there is none."""
    return max((end - start for start, end in spans), default=0)

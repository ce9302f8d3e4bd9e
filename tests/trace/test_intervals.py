"""Interval arithmetic, held to sets of single nanoseconds."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.trace.intervals import (
    Span,
    clip,
    intersect,
    length,
    longest,
    subtract,
    union,
)

SPANS = st.lists(
    st.tuples(st.integers(-20, 60), st.integers(-5, 25)).map(lambda each: (each[0], sum(each))),
    max_size=12,
)


def points(spans: list[Span]) -> set[int]:
    return {at for start, end in spans for at in range(start, end)}


def is_set(spans: list[Span]) -> bool:
    inside = all(start < end for start, end in spans)
    return inside and all(before[1] < after[0] for before, after in pairwise(spans))


@given(SPANS, SPANS)
@settings(max_examples=60)
def test_everything_equals_sets_of_nanoseconds(left: list[Span], right: list[Span]) -> None:
    a, b = union(left), union(right)
    assert is_set(a)
    assert points(a) == points(left)
    assert length(a) == len(points(left))
    for got, want in (
        (intersect(a, b), points(a) & points(b)),
        (subtract(a, b), points(a) - points(b)),
        (clip(a, 3, 30), points(a) & set(range(3, 30))),
    ):
        assert points(got) == want
        assert union(got) == got or not is_set(got)
        assert length(got) == len(want)
    assert longest(a) == max((end - start for start, end in a), default=0)
    assert length(intersect(a, b)) + length(subtract(a, b)) == length(a)


def test_half_open_neighbours_become_one_and_do_not_meet() -> None:
    assert union([(5, 9), (0, 5), (20, 20), (9, 8)]) == [(0, 9)]
    assert intersect([(0, 5)], [(5, 9)]) == []
    assert subtract([(0, 5)], [(5, 9)]) == [(0, 5)]

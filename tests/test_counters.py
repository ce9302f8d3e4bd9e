"""Differences of counters: growth, resets, and counters that are full."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.check import Span, Watched
from commcheck.counters import Counters, errors, growth, length

COUNTS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2**64), max_size=4)


@settings(max_examples=60)
@given(COUNTS, COUNTS, st.floats(0, 1e6))
def test_growth_is_never_negative_and_never_of_what_is_not_there(
    first: dict[str, int], last: dict[str, int], seconds: float
) -> None:
    grown = growth(Span(Counters(first), Counters(last), seconds), "abcd")
    assert grown.added.keys() <= first.keys() & last.keys()
    assert all(count > 0 for count in grown.added.values())
    assert grown.per_hour >= 0
    for name in grown.reset:
        assert last[name] < first[name]
    for name in first.keys() & last.keys():
        least = last[name] - first[name] if last[name] >= first[name] else last[name]
        assert grown.added.get(name, 0) == least


def test_what_is_said_of_a_growth() -> None:
    span = Span(Counters({"a": 5, "b": 9, "c": 1}), Counters({"a": 8, "b": 2, "c": 1}), 10.0)
    assert str(growth(span, "abc")) == "a +3, b +2 at least (reset) in 10 s"
    assert str(growth(span, "c")) == "no growth in 10 s"
    assert growth(span, "ab").per_hour == 1800.0


def test_a_counter_at_its_top_is_full_and_one_beyond_it_is_not() -> None:
    reading = Counters({"a": 255, "b": 256, "c": 0})
    found = errors(Watched(Span(reading, reading, 1.0)), "abcd", tops={"a": 255, "b": 255})
    assert (found.there, found.full) == (("a", "b", "c"), ("a",))
    assert not found.never
    assert found.only("c").never
    assert found.only("c").full == ()


def test_the_earlier_run_is_the_longer_window() -> None:
    last = Counters({"a": 7})
    visit, since = Span(last, last, 1.0), Span(Counters({"a": 2}), last, 3600.0)
    found = errors(Watched(visit, since), "a")
    assert found.longest.added == {"a": 5}
    assert found.measured["since_earlier_run_s"] == 3600
    assert found.measured["added_since_earlier_run"] == {"a": 5}
    assert errors(Watched(visit), "a").longest.added == {}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.412, "0.412 s"), (10, "10 s"), (600, "10 min"), (9000, "2.5 h"), (259_200, "3 days")],
)
def test_lengths(seconds: float, text: str) -> None:
    assert length(seconds) == text

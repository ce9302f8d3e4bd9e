"""Times as text to whole nanoseconds."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.trace.microseconds import nanoseconds


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("5107603519532.857", 5107603519532857),
        ("1711964646000000.001", 1711964646000000001),  # a double would lose the last digits
        ("12", 12000),
        ("0.5", 500),
        ("12.77012757357446", 12770),  # float noise, as torch_npu writes it
        ("12.769999999999", 12770),
        ("1e3", 1_000_000),
        ("-1.250", -1250),
    ],
)
def test_text(text: str, ns: int) -> None:
    assert nanoseconds(text) == ns


@pytest.mark.parametrize(
    "text", ["", "abc", "1.2.3", "nan", "inf", "None", ".500x", "9e99", "9" * 30]
)
def test_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="is no time"):
        nanoseconds(text)


@given(st.integers(0, 4 * 10**15), st.integers(0, 999))
@settings(max_examples=50)
def test_every_digit_counts(whole: int, rest: int) -> None:
    assert nanoseconds(f"{whole}.{rest:03d}") == int(Decimal(f"{whole}.{rest:03d}") * 1000)

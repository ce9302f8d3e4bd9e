"""Microseconds written as decimals, as integer nanoseconds.

A double keeps a quarter of a microsecond of an absolute time since 1970, so that the text is read
digit by digit and no time ever becomes a float.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Final

MOST_NS: Final = 1 << 62
"""In the year 2116. The sum of two such times still has room in 64 bits."""


def nanoseconds(text: str) -> int:
    """``"12.345"`` (us) -> 12345. More digits, as of float noise, are rounded.

    Raises ``ValueError`` for what is no number, and beyond ``MOST_NS``.
    """
    try:
        exact = int((Decimal(text) * 1000).to_integral_value(ROUND_HALF_EVEN))
    except (InvalidOperation, OverflowError, ValueError):
        exact = MOST_NS + 1
    if abs(exact) > MOST_NS:
        raise ValueError(f"{text[:40]!r} is no time in microseconds")
    return exact

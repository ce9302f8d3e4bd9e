"""A number with its noun, as all texts for people say it."""

from __future__ import annotations


def many(count: int, noun: str, nouns: str = "") -> str:
    """``1 host``, ``1,912 hosts``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {nouns or noun + 's'}"

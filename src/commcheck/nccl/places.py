"""Where in the input a fact stands."""

from __future__ import annotations

from typing import Final

At = tuple[int, int]
"""Index of the file, physical line counted from 1."""

RANKS_MOST: Final = 1 << 20
"""Ranks of one job: a larger number in a log is damage, and nobody wants to count to it."""

"""Pairs reach their speed.

Why: playbooks in the tests name it. Reads: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from commcheck.check import Check, Nothing, limit, passed
from commcheck.model import Machine, Verdict, Words


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be set."""

    from_mib: int = limit(8, unit="MiB", source="the test")
    network_ratio: float = limit(0.85, unit="of the bound", source="the test")


def judge(_seen: Nothing, _machine: Machine, _want: Nothing, _limits: Limits) -> Verdict:
    """Nothing to find."""
    return passed("fine")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads(Check[Nothing, Machine, Nothing, Limits]):
    """A check that loads its host."""

    effects: frozenset[str] = frozenset({"load"})


CHECK = Loads(
    id="physical.collective-pairs",
    title=Words("Pairs reach their speed", "成对带宽达标"),
    subject=Machine,
    seen=Nothing,
    limits=Limits,
    judge=judge,
)

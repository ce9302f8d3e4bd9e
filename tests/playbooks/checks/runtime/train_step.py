"""A step takes its time.

Why: playbooks in the tests name it. Reads: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from commcheck.check import Check, Nothing, limit, passed
from commcheck.model import Machine, Verdict, Words


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be set."""

    steps: int = limit(5, unit="steps", source="the test")


def judge(_seen: Nothing, _machine: Machine, _want: Nothing, _limits: Limits) -> Verdict:
    """Nothing to find."""
    return passed("fine")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads(Check[Nothing, Machine, Nothing, Limits]):
    """A check that loads its host."""

    effects: frozenset[str] = frozenset({"load"})


CHECK = Loads(
    id="runtime.train-step",
    title=Words("A step takes its time", "单步耗时正常"),
    subject=Machine,
    seen=Nothing,
    limits=Limits,
    judge=judge,
)

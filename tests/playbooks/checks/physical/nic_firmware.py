"""The firmware is right.

Why: playbooks in the tests name it. Reads: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from commcheck.check import Check, Nothing, limit, passed
from commcheck.model import Machine, Verdict, Words


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be set."""

    lowest: str = limit("28.39", unit="version", source="the test")
    exact: bool = limit(False, unit="yes or no", source="the test")
    share: float = limit(0.9, unit="of all", source="the test")
    known: tuple[str, ...] = limit((), unit="versions", source="the test")


def judge(_seen: Nothing, _machine: Machine, _want: Nothing, _limits: Limits) -> Verdict:
    """Nothing to find."""
    return passed("fine")


CHECK = Check(
    id="physical.nic-firmware",
    title=Words("The firmware is right", "固件正确"),
    subject=Machine,
    seen=Nothing,
    limits=Limits,
    judge=judge,
)

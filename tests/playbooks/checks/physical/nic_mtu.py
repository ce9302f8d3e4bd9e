"""The MTU is right.

Why: playbooks in the tests name it. Reads: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from commcheck.check import Check, Nothing, limit, passed
from commcheck.model import Machine, Verdict, Words


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be set."""

    floor_bytes: int = limit(4192, unit="bytes", source="the test")
    share: float = limit(0.5, unit="of all", source="the test")


def judge(_seen: Nothing, _machine: Machine, _want: Nothing, _limits: Limits) -> Verdict:
    """Nothing to find."""
    return passed("fine")


CHECK = Check(
    id="physical.nic-mtu",
    title=Words("The MTU is right", "MTU 正确"),
    subject=Machine,
    seen=Nothing,
    limits=Limits,
    judge=judge,
)

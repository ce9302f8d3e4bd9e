"""The environment is right.

Why: playbooks in the tests name it. Reads: nothing.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, passed
from commcheck.model import Machine, Verdict, Words


def judge(_seen: Nothing, _machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """Nothing to find."""
    return passed("fine")


CHECK = Check(
    id="library.env",
    title=Words("The environment is right", "环境变量正确"),
    subject=Machine,
    seen=Nothing,
    judge=judge,
)

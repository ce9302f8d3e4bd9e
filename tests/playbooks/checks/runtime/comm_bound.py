"""Communication is no bottleneck.

Why: playbooks in the tests name it. Reads: nothing.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, passed
from commcheck.model import Machine, Verdict, Words


def judge(_seen: Nothing, _machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """Nothing to find."""
    return passed("fine")


CHECK = Check(
    id="runtime.comm-bound",
    title=Words("Communication is no bottleneck", "通信不是瓶颈"),
    subject=Machine,
    seen=Nothing,
    judge=judge,
)

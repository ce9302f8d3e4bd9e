"""A command that takes eight seconds: what waiting costs the client.

Why: bandwidth tests and training steps keep a client waiting on every host at once.
Reads: ``sleep 8``. One verdict for each host.
"""

from __future__ import annotations

from dataclasses import dataclass

from commcheck.check import Check, Nothing, Reader, passed, reads
from commcheck.command import Command, Output, require_ok
from commcheck.model import Machine, Verdict, Words


def _parse(output: Output) -> int:
    require_ok(output, "sleep")
    return output.rc


NAP = Reader("sleep", (Command(("sleep", "8"), timeout_s=60.0),), _parse)


@dataclass(frozen=True, slots=True)
class Seen:
    """That it ended."""

    code: int = reads(NAP)


def judge(_seen: Seen, _machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """It came back."""
    return passed("slept")


CHECK = Check(
    id="physical.nap", title=Words("Nap", "小睡"), subject=Machine, seen=Seen, judge=judge
)

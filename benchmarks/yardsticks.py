"""What holds mean on this machine, at this hour: work that both machines were seen to do.

The numbers that rows are held to come from one machine. Others are faster or slower, and a virtual
one is so from hour to hour; beside a row that is measured here stands what it would be there.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Final

LOGIN_MS: Final = 2.8
"""A bare login by paramiko on a simulated host, there. 3.0 to 3.3 ms by ML-KEM, which OpenSSH has
since 9.9; by curve25519, with which sshd of Debian 12 and these hosts answer, an eighth less."""

JSON_MB_S: Final = 48.0
"""``json.load`` on a trace of 203 MB, there."""


@dataclass(frozen=True, slots=True)
class Pace:
    """``slower``: time that a yardstick takes here, to its time there."""

    slower: float

    def rate(self, here: float, unit: str) -> str:
        """So many of something in a time."""
        return f"{here:.0f} {unit} ({here * self.slower:.0f} there)"

    def time(self, here: float, unit: str) -> str:
        """So much time for something."""
        return f"{here:.1f} {unit} ({here / self.slower:.1f} there)"


_ALONE: Final = "d = {}\nfor i in range(6_000_000): d[i & 1023] = str(i)"


def gain_of_two() -> float:
    """By how much two processes that share nothing are faster than one after the other.

    2.0 on two free cores; less where what the machine calls two cores are the two threads of one.
    """
    return 2 * min(_wall_s(1) for _ in range(3)) / min(_wall_s(2) for _ in range(3))


def _wall_s(count: int) -> float:
    began = time.perf_counter()
    running = [subprocess.Popen([sys.executable, "-c", _ALONE]) for _ in range(count)]
    for each in running:
        each.wait()
    return time.perf_counter() - began

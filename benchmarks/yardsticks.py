"""What holds mean on this machine, at this hour: work that both machines were seen to do.

The numbers that rows are held to come from one machine. Others are faster or slower, and a virtual
one is so from hour to hour; beside a row that is measured here stands what it would be there.
"""

from __future__ import annotations

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

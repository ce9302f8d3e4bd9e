"""``ping``: how many of the packets that were sent came back, at one size or two."""

from __future__ import annotations

from typing import Final

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.lazy import dataclass, regex

TOOL: Final = "ping"

SMALL: Final = "[small]"
"""Stands before the answer to small packets, which are sent where the full-sized ones failed."""

_SUMMARY: Final = regex(
    r"(\d+) packets transmitted, (\d+) (?:packets )?received,(?: .+,)? [\d.]+% packet loss(?:,.*)?"
)
_SAYS_WHY: Final = regex(r"From \S+ icmp_seq=\d+ (.+)|ping: (?:local error: )?(.+)")


@dataclass(frozen=True, slots=True)
class Ping:
    """One call. ``why``: what a router or the sender's kernel said of a packet, or ""."""

    sent: int
    received: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Pings:
    """Packets of full size, and small ones where some of those were lost."""

    full: Ping
    small: Ping | None = None


def parse(output: Output) -> Pings:
    """Both calls. Raises ``CommandFailed`` with the tool's own words where it could not begin."""
    parts = output.text.split(f"{SMALL}\n")
    if len(parts) > 2:
        raise ParseError(TOOL, output.text, f"{SMALL} once")
    return Pings(*(_one(part) for part in parts))


def _one(text: str) -> Ping:
    lines = text.splitlines()
    counts = [match for match in map(_SUMMARY.fullmatch, lines) if match]
    why = next((match for match in map(_SAYS_WHY.fullmatch, lines) if match), None)
    said = (why[1] or why[2]) if why else ""
    if not counts and said:
        raise CommandFailed(f"ping says {said[:160]}")
    if len(counts) != 1 or int(counts[0][2]) > int(counts[0][1]) or int(counts[0][1]) == 0:
        raise ParseError(TOOL, text, "one line with packets sent and received")
    return Ping(int(counts[0][1]), int(counts[0][2]), said)

"""Whether the host's clock is in step with the world's: chrony, ntpd or systemd's own word.

``chronyc -n tracking`` and ``ntpq -n -c rv`` tell the offset; ``timedatectl show`` only yes or no,
which is the kernel's flag and so holds for PTP as well.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.lines import need, once, only, whole_lines
from commcheck.lazy import dataclass, regex


@dataclass(frozen=True, slots=True)
class Clock:
    """``offset_s``: seconds that the host is fast (or slow, below zero); None: not told.

    ``follows_itself``: the daemon's reference is the host's own clock, so that the offset is none.
    """

    source: str
    is_synchronized: bool
    offset_s: float | None = None
    follows_itself: bool = False


_SYSTEM_TIME: Final = regex(r"(\d{1,12}\.\d{1,9}) seconds (slow|fast) of NTP time")
_LEAP: Final = regex(r"Normal|Insert second|Delete second|Not synchronised")
_OWN_OF_CHRONY: Final = "7F7F0101"
"""127.127.1.1: no external source, the ``local`` directive is in force. Source: chronyc(1)."""
_OWN_OF_NTPD: Final = regex(r"\brefid=(?:127\.127\.1\.\d{1,2}|LOCAL\(\d{1,2}\)|LO?CL)(?=,)")
"""The undisciplined local clock. Source: ntp.org, driver 1."""


def parse_chrony(output: Output) -> Clock:
    """``chronyc -n tracking``."""
    require_ok(output, "chronyc")
    text, values = output.text, dict[str, str]()
    for line in whole_lines(text, "chronyc"):
        match = only(r"([A-Z][A-Za-z ()]{2,20}?) *: (.*)", line, text, "chronyc")
        once(values, match[1], match[2], text, "chronyc")
    need(values, {"Reference ID", "System time", "Leap status"}, text, "chronyc")
    leap = only(_LEAP, values["Leap status"], text, "chronyc")[0]
    time = only(_SYSTEM_TIME, values["System time"], text, "chronyc")
    offset = float(time[1]) * (1 if time[2] == "fast" else -1)
    if leap == "Not synchronised":
        return Clock("chrony", is_synchronized=False)
    own = values["Reference ID"].startswith(_OWN_OF_CHRONY)
    return Clock("chrony", True, None if own else offset, own)


def parse_ntpq(output: Output) -> Clock:
    """``ntpq -n -c rv``: the variables of ntpd, and its leap indicator."""
    require_ok(output, "ntpq")
    text = output.text
    leap = re.findall(r"\bleap_(\w+)", text)
    offset = re.findall(r"(?:^|, )offset=([+-]?\d{1,12}(?:\.\d{1,9})?)(?=,)", text, re.MULTILINE)
    known = {"none", "add_sec", "del_sec", "alarm"}
    if len(leap) != 1 or leap[0] not in known or len(offset) != 1 or not text.endswith("\n"):
        raise ParseError("ntpq", text, "one leap indicator and one offset")
    if leap[0] == "alarm":
        return Clock("ntpd", is_synchronized=False)
    own = _OWN_OF_NTPD.search(text) is not None
    # In milliseconds; positive where the host is behind.
    return Clock("ntpd", True, None if own else -float(offset[0]) / 1000, own)


def parse_timedatectl(output: Output) -> Clock:
    """``timedatectl show``."""
    require_ok(output, "timedatectl")
    text, values = output.text, dict[str, str]()
    for line in whole_lines(text, "timedatectl"):
        match = only(r"([A-Za-z]+)=(.*)", line, text, "timedatectl")
        once(values, match[1], match[2], text, "timedatectl")
    need(values, {"NTPSynchronized"}, text, "timedatectl")
    word = only("yes|no", values["NTPSynchronized"], text, "timedatectl")[0]
    return Clock("systemd", word == "yes")


CHRONY: Final = Reader(
    tool="chronyc",
    commands=(Command(("chronyc", "-n", "tracking")),),
    parse=parse_chrony,
    varies=True,
)
NTPQ: Final = Reader(
    tool="ntpq", commands=(Command(("ntpq", "-n", "-c", "rv")),), parse=parse_ntpq, varies=True
)
TIMEDATECTL: Final = Reader(
    tool="timedatectl",
    commands=(Command(("timedatectl", "show")),),
    parse=parse_timedatectl,
    varies=True,
)

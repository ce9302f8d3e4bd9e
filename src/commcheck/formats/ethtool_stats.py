"""``ethtool -S DEV``: the driver's counters, by the driver's own names.

Names differ between drivers and releases, and a feature that is off has no counters: nothing is
made up for what is missing. Counters of single queues and rings are left out, there are thousands.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.counters import Counters
from commcheck.errors import CommandFailed, ParseError
from commcheck.lazy import regex
from commcheck.model import Rail

TOOL: Final = "ethtool-stats"

PAUSED_US: Final = (
    *(f"rx_prio{prio}_pause_duration" for prio in range(8)),
    *(f"pfc_pri{prio}_rx_duration_us" for prio in range(8)),
)
"""Microseconds for which the switch paused a priority: mlx5 (NVIDIA mlx5 counters.rst), then
bnxt_en (bnxt_ethtool.c)."""

_HEAD: Final = "NIC statistics:"
_NUMBER: Final = regex(r"-?[0-9]{1,20}")
_OF_A_QUEUE: Final = regex(r"\[\d+\]|(?:[rt]x|ch|queue_|ptp_ch)\d")
_NONE: Final = regex(r"no stats available|Operation not supported", re.I)


def parse(output: Output) -> Counters:
    """The counters; none where the driver has none. Raises ``CommandFailed``."""
    text = output.text
    if output.rc != 0:
        both = f"{text}\n{output.stderr}"
        if _NONE.search(both) and _HEAD not in text:
            return Counters({})
        raise CommandFailed(f"ethtool -S failed with exit code {output.rc}: {output.complaint}")
    _, found, rest = text.partition(f"{_HEAD}\n")
    if not found or not rest.strip() or not rest.endswith("\n"):
        # A last line without its end is a number that may have lost digits.
        raise ParseError(TOOL, text, f"{_HEAD!r} and whole lines of counters")
    values: dict[str, int] = {}
    for line in rest.split("\n"):
        if not line.strip():
            continue
        # Not one pattern for the line: there may be thousands of them, and this is 4 times faster.
        name, found, number = line.rpartition(": ")
        if not found or not line[0].isspace() or not _NUMBER.fullmatch(number):
            raise ParseError(TOOL, text, f"a counter and its number, not {line.strip()[:60]!r}")
        name = name.strip()
        if not _OF_A_QUEUE.match(name):
            # A name that comes twice is told per queue by some releases; the first is the port's.
            values.setdefault(name, int(number))
    return Counters(values)


ETHTOOL_STATS: Final = Reader(
    tool=TOOL,
    commands=(Command(("ethtool", "-S", "{netdev}")),),
    parse=parse,
    per=Rail,
    varies=True,
)

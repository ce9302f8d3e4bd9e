"""What NVIDIA's Xid and SXid codes mean and ask for: the driver's own error reports.

Codes, meanings and actions by NVIDIA's Xid catalog for Ampere and newer (deploy/xid-errors); the
grades are ours: what the catalog asks to reset, power cycle or inspect is a fault of the host,
what it asks to restart is the job's, what it asks to ignore is a remark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from commcheck.lazy import dataclass, regex


class Ask(StrEnum):
    """What a code asks for."""

    NOTHING = "nothing"
    RESTART_JOB = "restart the job"
    WATCH = "watch it"
    RESET = "reset the GPU"
    MEMORY = "reset the GPU, its memory failed"
    LINK = "look at NVLink"
    REBOOT = "reboot the host"
    POWER_CYCLE = "power cycle the host"


FAULTS: Final = frozenset({Ask.RESET, Ask.MEMORY, Ask.LINK, Ask.REBOOT, Ask.POWER_CYCLE})
"""What the host cannot go on with."""


@dataclass(frozen=True, slots=True)
class Xid:
    """A code's meaning in a few words, and what it asks for."""

    meaning: str
    ask: Ask


_ENGINES: Final = (
    *(8, 32, 60, 68, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84, 85, 86, 88, 89),
    *range(96, 106),
    *range(126, 136),
    *(139, 142),
)
"""Copy, video and other engines that refused a program's work."""

XIDS: Final[Mapping[int, Xid]] = {
    **dict.fromkeys(_ENGINES, Xid("an engine refused a program's work", Ask.RESTART_JOB)),
    11: Xid("invalid command stream", Ask.RESTART_JOB),
    13: Xid("exception in a kernel", Ask.RESTART_JOB),
    31: Xid("illegal memory access of a program", Ask.RESTART_JOB),
    43: Xid("a program's kernel was stopped", Ask.RESTART_JOB),
    45: Xid("a program was torn down", Ask.NOTHING),
    48: Xid("uncorrectable memory error", Ask.MEMORY),
    54: Xid("auxiliary power is not connected", Ask.POWER_CYCLE),
    62: Xid("internal controller halted", Ask.RESET),
    63: Xid("a memory row was replaced", Ask.NOTHING),
    64: Xid("a memory row could not be replaced", Ask.MEMORY),
    66: Xid("illegal access by the driver", Ask.NOTHING),
    67: Xid("illegal access by the driver", Ask.NOTHING),
    69: Xid("a program named a class that is none", Ask.RESTART_JOB),
    74: Xid("NVLink error", Ask.LINK),
    78: Xid("vGPU did not start", Ask.WATCH),
    79: Xid("fell off the bus", Ask.POWER_CYCLE),
    92: Xid("many corrected memory errors", Ask.WATCH),
    93: Xid("InfoROM may not be written any more", Ask.NOTHING),
    94: Xid("uncorrectable memory error, kept to one program", Ask.WATCH),
    95: Xid("uncorrectable memory error, not kept to one program", Ask.MEMORY),
    106: Xid("test message", Ask.NOTHING),
    107: Xid("test message", Ask.NOTHING),
    109: Xid("context switch timed out", Ask.RESET),
    110: Xid("security fault", Ask.RESET),
    119: Xid("GSP firmware did not answer", Ask.RESET),
    120: Xid("GSP firmware failed", Ask.RESET),
    121: Xid("corrected errors on the link to the CPU", Ask.NOTHING),
    136: Xid("NVLink did not train", Ask.LINK),
    137: Xid("illegal access of a peer over NVLink", Ask.RESTART_JOB),
    140: Xid("uncorrectable memory error that could not be mended", Ask.MEMORY),
    141: Xid("fast path of CUDA failed", Ask.NOTHING),
    143: Xid("GPU did not start", Ask.RESET),
    **dict.fromkeys(range(144, 151), Xid("NVLink error", Ask.LINK)),
    155: Xid("NVLink went down on purpose or by software", Ask.LINK),
    156: Xid("a part of the chip was retired", Ask.RESET),
    157: Xid("no spare part is left to retire another", Ask.WATCH),
    158: Xid("fatal timeout", Ask.RESET),
    160: Xid("a memory channel was retired", Ask.WATCH),
    161: Xid("a memory channel could not be retired", Ask.WATCH),
    162: Xid("power smoothing is on again", Ask.NOTHING),
    163: Xid("power smoothing is off", Ask.WATCH),
    164: Xid("power smoothing wears out", Ask.WATCH),
    165: Xid("power smoothing is worn out", Ask.WATCH),
    167: Xid("fatal timeout of PCIe", Ask.RESET),
    168: Xid("less memory than there should be", Ask.WATCH),
    169: Xid("internal controller halted", Ask.RESET),
    171: Xid("uncorrectable error in DRAM", Ask.MEMORY),
    172: Xid("uncorrectable error in SRAM", Ask.MEMORY),
}

RECOVERY: Final = 154
"""Says what the errors before it ask for: its text decides."""

_RECOVERY: Final = (
    (regex(r"to 0x\d \(None\)"), Xid("recovered", Ask.NOTHING)),
    (regex(r"to 0x\d \((?:Node|System) Reboot"), Xid("needs a reboot", Ask.REBOOT)),
    (regex(r"to 0x\d \((?:GPU Reset|Bus Reset|Drain)"), Xid("needs a reset", Ask.RESET)),
)
_NON_FATAL: Final = regex(r"\bnon-?fatal\b", re.IGNORECASE)
_FATAL: Final = regex(r"\bfatal\b", re.IGNORECASE)
_NVLINK_5: Final = range(144, 151)


def look_up(code: int, text: str, *, of_switch: bool) -> Xid:
    """What a report asks for, by its code and, where that decides, by its text."""
    if of_switch:
        fatal = _FATAL.search(text) and not _NON_FATAL.search(text)
        return Xid("NVSwitch error", Ask.LINK if fatal else Ask.NOTHING)
    if code == RECOVERY:
        found = (xid for pattern, xid in _RECOVERY if pattern.search(text))
        return next(found, Xid("the driver asks for a recovery", Ask.WATCH))
    if code in _NVLINK_5 and _NON_FATAL.search(text):
        return Xid("NVLink error that is not fatal", Ask.WATCH)
    return XIDS.get(code, Xid("a code that commcheck does not know", Ask.WATCH))


def is_recovered(code: int, text: str) -> bool:
    """True where the driver says that nothing is to be done any more on this GPU."""
    return code == RECOVERY and _RECOVERY[0][0].search(text) is not None

"""``/proc/self/limits``: what the session's user may lock in memory."""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.lines import whole_lines
from commcheck.lazy import dataclass, regex

TOOL: Final = "proc-limits"

_LOCKED: Final = regex(r"Max locked memory +(unlimited|\d+) +(unlimited|\d+) +bytes *")


@dataclass(frozen=True, slots=True)
class LockedMemory:
    """Soft and hard limit in bytes; None is unlimited."""

    soft_bytes: int | None
    hard_bytes: int | None


def parse(output: Output) -> LockedMemory:
    """The limits on locked memory."""
    require_ok(output, "cat")
    text = output.text
    found = [match for line in whole_lines(text, TOOL) if (match := _LOCKED.fullmatch(line))]
    if len(found) != 1:
        raise ParseError(TOOL, text, "the line 'Max locked memory'")
    soft, hard = (None if word == "unlimited" else int(word) for word in found[0].groups())
    return LockedMemory(soft, hard)


PROC_LIMITS: Final = Reader(
    tool=TOOL, commands=(Command(("cat", "/proc/self/limits")),), parse=parse
)

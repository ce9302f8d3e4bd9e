"""``systemctl is-active UNIT``: whether a service runs; what is not installed is inactive."""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.lazy import regex

TOOL: Final = "systemctl"

_STATES: Final = regex(
    r"active|reloading|inactive|failed|activating|deactivating|maintenance|unknown"
)


def parse(output: Output) -> str:
    """The state in systemd's word. Raises ``CommandFailed`` where systemd does not run."""
    text = output.text
    if not text.strip() and output.rc != 0:
        raise CommandFailed(f"systemctl failed with exit code {output.rc}: {output.complaint}")
    # The exit code is 0 for active alone, 3 for other states, 4 for units that are not there.
    if not text.endswith("\n") or not _STATES.fullmatch(text.strip()):
        raise ParseError(TOOL, text, "one word that is a state of a unit")
    return text.strip()


FABRIC_MANAGER_UNIT: Final = Reader(
    tool=TOOL,
    commands=(Command(("systemctl", "is-active", "nvidia-fabricmanager")),),
    parse=parse,
)

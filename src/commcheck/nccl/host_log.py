"""The part of a host's NCCL or HCCL log that matters, picked out on the host itself.

Logs are large: only lines with a mark of NCCL, HCCL or PyTorch's watchdog leave the host.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed
from commcheck.lazy import dataclass
from commcheck.nccl.scan import ASCEND

HALF_BYTES: Final = 8 << 20
"""Kept of the beginning and of the end: init stands at the one, the error at the other."""

CUT: Final = "#commcheck: lines of the middle were left out on the host#"

MARKS: Final = (b"NCCL", *ASCEND)
"""A line has one of them, or stays where it is."""

GREP: Final = "grep -aF " + " ".join(f"-e '{mark.decode()}'" for mark in MARKS)
"""Keeps those lines, on a host."""

SCRIPT: Final = f"""\
set -- $1
if [ ! -e "$1" ]; then echo "no file is called $1" >&2; exit 2; fi
{GREP} -h -- "$@" /dev/null |
(head -c {HALF_BYTES}; echo; echo '{CUT}'; tail -c {HALF_BYTES})
"""
"""Expands the pattern and nothing else. head stops exactly where tail begins."""


@dataclass(frozen=True, slots=True)
class HostLog:
    """Lines of a log, in their order. ``truncated``: some are missing."""

    text: str
    truncated: bool


def parse(output: Output) -> HostLog:
    """The lines; raises ``CommandFailed`` where no log could be read."""
    before, mark, after = output.stdout.partition(f"\n{CUT}\n")
    if output.rc or not mark or (output.stderr.strip() and not before.strip()):
        raise CommandFailed(f"the log cannot be read: {output.complaint}")
    if not after:
        return HostLog(before, output.truncated or bool(output.stderr.strip()))
    # Both ends of the gap are pieces of lines.
    whole = before[: before.rfind("\n") + 1] + after[after.find("\n") + 1 :]
    return HostLog(whole, truncated=True)


HOST_LOG: Final = Reader(
    tool="nccl-log",
    commands=(
        Command(
            ("sh", "-c", SCRIPT, "sh", "{nccl_log}"),
            timeout_s=60,
            cap_bytes=3 * HALF_BYTES,
            globs=True,
        ),
    ),
    parse=parse,
    reads_cut_output=True,
)

POD_LOG: Final = Reader(
    tool="nccl-log",
    commands=(
        # Answered by the way to the pod, not in it.
        Command(("kubectl", "logs", "{pod}"), timeout_s=60, cap_bytes=3 * HALF_BYTES),
    ),
    parse=parse,
    reads_cut_output=True,
)

"""Xid and SXid reports of the NVIDIA driver in the kernel's log of this boot.

Logs are large, so the host filters: of the journal, or of the files that syslog writes, only the
reports come, and the kernel's first line of a boot. That line says that the log goes back so far;
without it, no report is not the same as none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.lines import only, whole_lines
from commcheck.lazy import dataclass, regex

TOOL: Final = "journalctl-xid"
FILES_TOOL: Final = "syslog-xid"

_JOURNAL: Final = regex(r"\[ *(\d{1,9}\.\d{1,6})\] \S{1,255} \S{1,64}: (.*)")
_SYSLOG: Final = regex(
    r"(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8}|\d{4}-\d\d-\d\dT[\d:.+Z-]{8,24}) \S{1,255} kernel: "
    r"(?:\[ *\d+\.\d+\] )?(.*)"
)
_XID: Final = regex(
    r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F:.]{5,12})(?: [^)]{1,40})?\): (\d{1,3})"
    r"(?:[ ,](.*))?"
)
_SXID: Final = regex(
    r"nvidia-nvswitch\S*: SXid \(PCI:([0-9a-fA-F]{4,8}:[0-9a-fA-F:.]{5,12})\): (\d{1,6}), ?(.*)"
)
_BOOT: Final = regex(r"Linux version (\S{1,80}) .*")
_UPTIME: Final = regex(r"(\d{1,12}\.\d{2}) \d{1,14}\.\d{2}\n")


@dataclass(frozen=True, slots=True)
class XidEvent:
    """One report. ``pci``: of the GPU, or of the NVSwitch. ``age_s``: None where it is not told."""

    code: int
    pci: str
    text: str
    of_switch: bool
    age_s: float | None


@dataclass(frozen=True, slots=True)
class KernelXids:
    """Reports of this boot, the newest first.

    ``kernel``: its version from the first line of the boot; None: the log does not go back so far.
    """

    kernel: str | None
    events: tuple[XidEvent, ...]


def parse_journal(journal: Output, uptime: Output) -> KernelXids:
    """``journalctl -k -b -r`` in seconds since the boot, and ``/proc/uptime``."""
    if not journal.text.strip():
        raise CommandFailed(f"the journal has no kernel log of this boot: {journal.complaint}")
    require_ok(journal, "journalctl")
    require_ok(uptime, "cat")
    up_s = float(only(_UPTIME, uptime.text, uptime.text, TOOL)[1])
    lines = _lines(journal)
    told = []
    for line in lines:
        match = only(_JOURNAL, line, journal.text, TOOL)
        told.append((match[2], max(0.0, up_s - float(match[1]))))
    return _read(told, journal.text, TOOL)


def _lines(journal: Output) -> list[str]:
    if not journal.truncated:
        return whole_lines(journal.text, TOOL)
    # The newest come first, so what was cut is old.
    return journal.text.split("\n")[:-1]


def parse_files(output: Output) -> KernelXids:
    """``sed`` over the files of syslog: what follows the last start of a kernel."""
    if not output.text.strip():
        raise CommandFailed("no file of syslog has a kernel log: " + output.complaint)
    lines = whole_lines(output.text, FILES_TOOL)
    messages = [only(_SYSLOG, line, output.text, FILES_TOOL)[1] for line in lines]
    # Where two files hold the same lines, the last start is in the second: its own are enough.
    starts = [at for at, message in enumerate(messages) if message.startswith("Linux version ")]
    since = messages[starts[-1] :] if starts else messages
    return _read([(message, None) for message in reversed(since)], output.text, FILES_TOOL)


def _read(told: Iterable[tuple[str, float | None]], text: str, tool: str) -> KernelXids:
    events: dict[XidEvent, None] = {}
    kernel = None
    for message, age_s in told:
        if (boot := _BOOT.fullmatch(message)) is not None:
            kernel = boot[1]
        elif (xid := _XID.fullmatch(message)) is not None:
            events[XidEvent(int(xid[2]), xid[1].lower(), (xid[3] or "").strip(), False, age_s)] = (
                None
            )
        elif (sxid := _SXID.fullmatch(message)) is not None:
            events[XidEvent(int(sxid[2]), sxid[1].lower(), sxid[3].strip(), True, age_s)] = None
        else:
            raise ParseError(tool, text, f"an Xid, not {message.strip()[:80]!r}")
    return KernelXids(kernel, tuple(events))


# "Xid (" or the kernel's first line: an "or" by lookaheads, since a bar is no plain word.
_WANTED: Final = r"^(?!(?!.*Xid.\()(?!Linux.version))"

JOURNAL_XIDS: Final = Reader(
    tool=TOOL,
    commands=(
        Command(
            (
                *("journalctl", "-k", "-b", "-r", "-q", "--no-pager"),
                *("-o", "short-monotonic", "-g", _WANTED),
            ),
            timeout_s=20.0,
            root=True,
            cap_bytes=1 << 17,
        ),
        Command(("cat", "/proc/uptime")),
    ),
    parse=parse_journal,
    reads_cut_output=True,
    varies=True,
)
SYSLOG_XIDS: Final = Reader(
    tool=FILES_TOOL,
    commands=(
        Command(
            (
                *("sed", "-n", "-e", "/NVRM:.Xid.(/p", "-e", "/:.SXid.(/p"),
                *("-e", "/kernel:.*Linux.version.[0-9]/p"),
                *("/var/log/kern.log", "/var/log/messages"),
            ),
            timeout_s=20.0,
            root=True,
            cap_bytes=1 << 17,
        ),
    ),
    parse=parse_files,
    varies=True,
)

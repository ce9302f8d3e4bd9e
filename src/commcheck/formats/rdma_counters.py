"""Counters of an RDMA port and of its PCI device, from sysfs as grep prints it.

``hw_counters`` are the driver's own (RoCE loss, congestion), ``counters`` those of the InfiniBand
standard, ``aer_dev_*`` those of the PCIe root about the card.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.counters import Counters
from commcheck.errors import CommandFailed, ParseError
from commcheck.lazy import regex
from commcheck.model import Rail

_PORT: Final = "/sys/class/infiniband/{hca}/ports/{port}"
_LINE: Final = regex(r"/\S*/(?:hw_)?counters/([A-Za-z0-9_.-]{1,64}):(\d{1,20})")
_AER: Final = regex(r"/\S*/aer_dev_(fatal|nonfatal|correctable):([A-Za-z0-9_]{1,32}) (\d{1,20})")

TOPS: Final = {
    "symbol_error": 65535,
    "link_error_recovery": 255,
    "link_downed": 255,
    "port_rcv_errors": 65535,
    "port_rcv_remote_physical_errors": 65535,
    "port_rcv_switch_relay_errors": 65535,
    "port_xmit_discards": 65535,
    "port_xmit_constraint_errors": 255,
    "port_rcv_constraint_errors": 255,
    "local_link_integrity_errors": 15,
    "excessive_buffer_overrun_errors": 15,
    "VL15_dropped": 65535,
}
"""Where PortCounters of the InfiniBand specification stop; they do not wrap."""


def parse(output: Output) -> Counters:
    """The counters of one port; raises ``CommandFailed`` where sysfs shows none."""
    values = _lines(output, "sysfs-counters", _LINE, lambda match: (match[1], match[2]))
    values.pop("lifespan", None)  # how often the driver refreshes them, in ms: no counter
    return Counters(values)


def parse_aer(output: Output) -> Counters:
    """PCIe errors as ``fatal.RxOF``; the kernel's own sums are ``fatal.TOTAL_ERR_FATAL``."""
    return Counters(
        _lines(output, "sysfs-aer", _AER, lambda match: (f"{match[1]}.{match[2]}", match[3]))
    )


def _lines(
    output: Output,
    tool: str,
    pattern: re.Pattern[str],
    pair: Callable[[re.Match[str]], tuple[str, str]],
) -> dict[str, int]:
    text = output.text
    if not text.strip():
        if output.rc in (0, 1, 2):
            raise CommandFailed("sysfs shows no such counters of this port")
        raise CommandFailed(f"grep failed with exit code {output.rc}: {output.complaint}")
    if not text.endswith("\n"):
        raise ParseError(tool, text, "whole lines")
    values: dict[str, int] = {}
    for line in text.split("\n")[:-1]:
        match = pattern.fullmatch(line)
        if match is None:
            raise ParseError(tool, text, f"a file and its number, not {line.strip()[:80]!r}")
        name, number = pair(match)
        if name in values:
            raise ParseError(tool, text, f"each counter once, but {name} is there twice")
        values[name] = int(number)
    return values


# -s: a counter that the hardware lacks answers with an error, and is left out.
HW_COUNTERS: Final = Reader(
    tool="sysfs-hw-counters",
    commands=(Command(("grep", "-rHs", ".", f"{_PORT}/hw_counters")),),
    parse=parse,
    per=Rail,
    varies=True,
)
IB_COUNTERS: Final = Reader(
    tool="sysfs-ib-counters",
    commands=(Command(("grep", "-rHs", ".", f"{_PORT}/counters")),),
    parse=parse,
    per=Rail,
    varies=True,
)
AER: Final = Reader(
    tool="sysfs-aer",
    commands=(
        Command(
            (
                "grep",
                "-Hs",
                ".",
                *(
                    f"/sys/class/infiniband/{{hca}}/device/aer_dev_{kind}"
                    for kind in ("fatal", "nonfatal", "correctable")
                ),
            )
        ),
    ),
    parse=parse_aer,
    per=Rail,
    varies=True,
)

"""``rdma link`` and ``rdma -j link`` of iproute2: ports, their state and their netdev.

The list has no last line: a cut at a line's end leaves a shorter one, whose entries are right.
"""

from __future__ import annotations

from typing import Any, Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.lines import only, parse_json, whole_lines
from commcheck.formats.rdma_port import PHYS_STATES, RdmaPort
from commcheck.lazy import regex

TOOL: Final = "rdma"

_HEAD: Final = regex(r"link ([\w.-]+)/(\d+) (.*?) ?")
_STATE: Final = regex("NOP|DOWN|INIT|ARMED|ACTIVE|ACTIVE_DEFER")


def parse(output: Output) -> tuple[RdmaPort, ...]:
    """The ports, none where there is no HCA; raises ``CommandFailed`` without an RDMA core."""
    text = output.text
    if output.rc != 0:
        if "NETLINK_RDMA" in f"{text}{output.stderr}":
            raise CommandFailed("the kernel has no RDMA core loaded", "modprobe ib_core")
        raise CommandFailed(f"rdma link failed with exit code {output.rc}: {output.complaint}")
    if text.lstrip().startswith(("[", "{")):
        return _from_json(output)
    ports = []
    for line in whole_lines(text, TOOL) if text else ():
        if line.startswith((" ", "\t")) or not line:
            continue  # details of -d
        match = only(_HEAD, line, text, TOOL)
        words = match[3].split(" ")
        if len(words) % 2:
            raise ParseError(TOOL, text, f"names and values, not {line[:60]!r}")
        pairs = dict(zip(words[::2], words[1::2], strict=True))
        ports.append(_port(match[1], int(match[2]), pairs, text))
    return tuple(ports)


def _from_json(output: Output) -> tuple[RdmaPort, ...]:
    document = parse_json(output, TOOL)
    if not isinstance(document, list):
        raise ParseError(TOOL, output.text, "a JSON list")
    ports = []
    for each in document:
        match each:
            case {"ifname": str(hca), "port": int(number)} if not isinstance(number, bool):
                ports.append(_port(hca, number, each, output.text))
            case _:
                raise ParseError(TOOL, output.text, "ifname and port of each link")
    return tuple(ports)


def _port(hca: str, number: int, pairs: dict[str, Any], text: str) -> RdmaPort:
    if "state" not in pairs or str(pairs.get("physical_state")) not in PHYS_STATES:
        raise ParseError(TOOL, text, "state and physical_state of each link")
    return RdmaPort(
        hca=hca,
        port=number,
        state=only(_STATE, str(pairs["state"]), text, TOOL)[0],
        phys_state=PHYS_STATES[str(pairs["physical_state"])],
        lid=_number(pairs.get("lid"), text),
        sm_lid=_number(pairs.get("sm_lid"), text),
        netdev=str(pairs["netdev"]) if "netdev" in pairs else None,
    )


def _number(value: Any, text: str) -> int | None:
    return None if value is None else int(only(r"\d{1,6}", str(value), text, TOOL)[0])


RDMA_LINK: Final = Reader(tool=TOOL, commands=(Command((TOOL, "-j", "link")),), parse=parse)

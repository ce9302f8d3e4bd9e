"""``ibstatus``: a shell script's view of sysfs, a block a port, values behind tabs and a blank."""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.lines import need, once, only, whole_lines
from commcheck.formats.rdma_port import HEX, RATE, SYSFS_PHYS, SYSFS_STATE, RdmaPort
from commcheck.lazy import regex

TOOL: Final = "ibstatus"

_HEAD: Final = regex(r"Infiniband device '([\w.-]+)' port (\d+) status:")


def parse(output: Output) -> tuple[RdmaPort, ...]:
    """The ports; raises ``CommandFailed`` where there is no HCA."""
    text = output.text
    if output.rc != 0 or "Fatal error:" in f"{text}{output.stderr}":
        raise CommandFailed(f"ibstatus failed with exit code {output.rc}: {output.complaint}")
    blocks: list[tuple[str, int, dict[str, str]]] = []
    for line in whole_lines(text, TOOL):
        if not line:
            continue
        if head := _HEAD.fullmatch(line):
            blocks.append((head[1], int(head[2]), {}))
            continue
        match = only(r"\t([a-z_ ]+):\t+ (.*)", line, text, TOOL)
        if not blocks:
            raise ParseError(TOOL, text, "a port before its values")
        once(blocks[-1][2], match[1], match[2], text, TOOL)
    if not blocks:
        raise ParseError(TOOL, text, "at least one port")
    return tuple(_port(*block, text) for block in blocks)


def _port(hca: str, number: int, values: dict[str, str], text: str) -> RdmaPort:
    need(values, {"base lid", "sm lid", "state", "phys state", "rate", "link_layer"}, text, TOOL)
    rate = only(RATE, values["rate"], text, TOOL)
    return RdmaPort(
        hca=hca,
        port=number,
        state=only(SYSFS_STATE, values["state"], text, TOOL)[1],
        phys_state=only(SYSFS_PHYS, values["phys state"], text, TOOL)[1],
        link_layer=only(r"Ethernet|InfiniBand|Unknown", values["link_layer"], text, TOOL)[0],
        rate_gbits=float(rate[1]),
        lanes=None if rate[2] is None else int(rate[2]),
        signal=rate[3],
        lid=int(only(HEX, values["base lid"], text, TOOL)[0], 16),
        sm_lid=int(only(HEX, values["sm lid"], text, TOOL)[0], 16),
    )


IBSTATUS: Final = Reader(tool=TOOL, commands=(Command((TOOL,)),), parse=parse)

"""``ibstat``: HCAs and their ports as the InfiniBand tools see them.

Without any HCA it prints nothing and exits 0: that is an answer, and never a healthy host.
``Link layer`` is the last line of a port, so a port that was cut lacks it.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.lines import need, once, only, whole_lines
from commcheck.formats.rdma_port import STATES, RdmaPort
from commcheck.lazy import regex

TOOL: Final = "ibstat"

_PHYS: Final = regex(r"[A-Z]\w*(?: \w+)*")


def parse(output: Output) -> tuple[RdmaPort, ...]:
    """The ports of all HCAs; none where the host has no HCA."""
    text = output.text
    if output.rc != 0:
        raise CommandFailed(f"ibstat failed with exit code {output.rc}: {output.complaint}")
    if not text.strip():
        return ()
    if not text.startswith("CA '"):
        raise ParseError(TOOL, text, "CA and its name on the first line")
    ports = []
    lines = "\n".join(whole_lines(text, TOOL))
    for block in re.split(r"^(?=CA ')", lines, flags=re.MULTILINE)[1:]:
        head, *bodies = re.split(r"^\tPort (?=\d+:)", block, flags=re.MULTILINE)
        hca = only(r"CA '([\w.-]+)'", head.partition("\n")[0], text, TOOL)[1]
        count = re.search(r"^\tNumber of ports: (\d+)$", head, re.MULTILINE)
        if count is None or int(count[1]) != len(bodies):
            raise ParseError(TOOL, text, "as many ports as 'Number of ports' says")
        ports += [_port(hca, body, text) for body in bodies]
    return tuple(ports)


def _port(hca: str, body: str, text: str) -> RdmaPort:
    number, *lines = body.rstrip("\n").split("\n")
    values: dict[str, str] = {}
    for line in lines:
        match = only(r"\t\t([A-Z][\w ]*): (.*)", line, text, TOOL)
        once(values, match[1], match[2], text, TOOL)
    need(
        values,
        {"State", "Physical state", "Rate", "Base lid", "SM lid", "Link layer"},
        text,
        TOOL,
    )
    return RdmaPort(
        hca=hca,
        port=int(only(r"(\d+):", number, text, TOOL)[1]),
        state=STATES[only("|".join(STATES), values["State"], text, TOOL)[0]],
        phys_state=only(_PHYS, values["Physical state"], text, TOOL)[0],
        link_layer=only(r"Ethernet|InfiniBand|Unknown", values["Link layer"], text, TOOL)[0],
        # The newest releases say what is left of the rate beside it.
        rate_gbits=float(
            only(r"\d{1,4}(?:\.\d)?", values.get("Effective speed", values["Rate"]), text, TOOL)[0]
        ),
        lid=int(only(r"\d{1,6}", values["Base lid"], text, TOOL)[0]),
        sm_lid=int(only(r"\d{1,6}", values["SM lid"], text, TOOL)[0]),
    )


IBSTAT: Final = Reader(tool=TOOL, commands=(Command((TOOL,)),), parse=parse)

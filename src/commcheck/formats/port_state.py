"""State, rate, lids and partition keys of an HCA's port, from sysfs as grep prints them.

Empty slots of the partition table are left out on the host. The port's own files come last, so
output that was cut lacks one of them. A kernel without some of them leaves that unknown.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.lines import files, need, once, only
from commcheck.formats.rdma_port import HEX, RATE, SYSFS_PHYS, SYSFS_STATE, RdmaPort
from commcheck.lazy import regex
from commcheck.model import Rail

TOOL: Final = "sysfs-port"

_PORT: Final = "/sys/class/infiniband/{hca}/ports/{port}"
_NAMES: Final = ("pkeys", "lid", "sm_lid", "rate", "phys_state", "link_layer", "state")
_TAIL: Final = regex(
    r"/infiniband/([^/:]+)/ports/(\d+)/"
    r"(?:pkeys/(\d{1,4})|(lid|sm_lid|rate|phys_state|link_layer|state))$"
)


def parse(output: Output) -> RdmaPort:
    """The port; raises ``CommandFailed`` where sysfs shows none."""
    text = output.text
    if output.rc in (1, 2) and not text.strip():
        raise CommandFailed("sysfs shows no such port")
    values: dict[str, str] = {}
    pkeys: dict[int, int] = {}
    owners = set()
    for match, value in files(text, _TAIL, TOOL):
        hca, port, slot, name = match.groups()
        owners.add((hca, int(port)))
        if slot is None:
            once(values, name, value, text, TOOL)
        elif int(slot) in pkeys:
            raise ParseError(TOOL, text, f"slot {slot} once")
        else:
            pkeys[int(slot)] = int(only(r"0x[0-9a-f]{4}", value, text, TOOL)[0], 16)
    need(values, {"state", "phys_state", "link_layer", "rate"}, text, TOOL)
    if len(owners) != 1:
        raise ParseError(TOOL, text, "one port")
    ((hca, number),) = owners
    rate = only(RATE, values["rate"], text, TOOL)
    lids = {
        name: int(only(HEX, values[name], text, TOOL)[0], 16)
        for name in ("lid", "sm_lid")
        if name in values
    }
    return RdmaPort(
        hca=hca,
        port=number,
        state=only(SYSFS_STATE, values["state"], text, TOOL)[1],
        phys_state=only(SYSFS_PHYS, values["phys_state"], text, TOOL)[1],
        link_layer=only(
            r"Ethernet|InfiniBand|Unspecified|Unknown", values["link_layer"], text, TOOL
        )[0],
        rate_gbits=float(rate[1]),
        lanes=None if rate[2] is None else int(rate[2]),
        signal=rate[3],
        lid=lids.get("lid"),
        sm_lid=lids.get("sm_lid"),
        pkeys=tuple(sorted(pkeys.items())),
    )


PORT_STATE: Final = Reader(
    tool=TOOL,
    commands=(Command(("grep", "-rHsxv", "0x0000", *(f"{_PORT}/{name}" for name in _NAMES))),),
    parse=parse,
    per=Rail,
)

"""The GID table of a RoCE port, from ``/sys/class/infiniband`` as grep prints it.

Slots that hold only zeros are unused, and asking for their type is an "Invalid argument": grep's
exit code 2 is normal. Every used slot has a type and a netdev, and the three folders are read one
after the other: a table that lacks one was cut, and is refused.
"""

from __future__ import annotations

from ipaddress import IPv6Address
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.lazy import dataclass, regex
from commcheck.model import Rail

TOOL: Final = "sysfs-gids"

ZERO: Final = ":".join(["0000"] * 8)
_PORT: Final = "/sys/class/infiniband/{hca}/ports/{port}"
_LINE: Final = regex(
    r"/\S*?/?sys/class/infiniband/([^/]+)/ports/(\d+)/(gids|gid_attrs/types|gid_attrs/ndevs)"
    r"/(\d{1,4}):(.*)"
)
_FORMS: Final = {
    "gids": regex(r"[0-9a-f]{4}(?::[0-9a-f]{4}){7}"),
    "gid_attrs/types": regex(r"IB/RoCE v1|RoCE v2"),
    "gid_attrs/ndevs": regex(r"[^\s/:]{1,15}"),  # the kernel's limit for a name
}


@dataclass(frozen=True, slots=True)
class Gid:
    """One used slot."""

    index: int
    gid: str  # full hexadecimal, as sysfs prints it
    roce_version: int  # 1 or 2
    netdev: str

    @property
    def ipv4(self) -> str | None:
        """The IPv4 address that the GID maps, if it does."""
        address = IPv6Address(self.gid).ipv4_mapped
        return None if address is None else str(address)

    @property
    def is_link_local(self) -> bool:
        """True where no router carries it: of fe80::/10, or mapped from 169.254.0.0/16."""
        address = IPv6Address(self.gid)
        return (address.ipv4_mapped or address).is_link_local


@dataclass(frozen=True, slots=True)
class GidTable:
    """The used slots of one port, by index."""

    hca: str
    port: int
    gids: tuple[Gid, ...]


def parse(output: Output) -> GidTable:
    """The table; raises ``CommandFailed`` where no used slot could be read."""
    text = output.text
    slots, owners = _slots(text)
    used = sorted(index for index, gid in slots["gids"].items() if gid != ZERO)
    if not used:
        if output.rc in (0, 1, 2) and not text.strip():
            raise CommandFailed(
                "sysfs shows no GID of this port: no such port, or its table is empty"
            )
        raise ParseError(TOOL, text, "at least one used GID")
    if not text.endswith("\n") or len(owners) != 1:
        raise ParseError(TOOL, text, "the whole table of one port")
    types, ndevs = slots["gid_attrs/types"], slots["gid_attrs/ndevs"]
    missing = [index for index in used if index not in types or index not in ndevs]
    if missing:
        raise ParseError(TOOL, text, f"type and netdev of GID {missing[0]}")
    (hca, port), *_ = owners
    return GidTable(
        hca=hca,
        port=int(port),
        gids=tuple(
            Gid(index, slots["gids"][index], int(types[index][-1]), ndevs[index]) for index in used
        ),
    )


def _slots(text: str) -> tuple[dict[str, dict[int, str]], set[tuple[str, str]]]:
    """Values by folder and index, and the ports that they belong to."""
    slots: dict[str, dict[int, str]] = {folder: {} for folder in _FORMS}
    owners = set()
    for line in text.split("\n"):
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        hca, port, folder, index, value = match.groups()
        if not _FORMS[folder].fullmatch(value) or int(index) in slots[folder]:
            raise ParseError(TOOL, text, f"a value of {folder}, not {value[:60]!r}")
        slots[folder][int(index)] = value
        owners.add((hca, port))
    return slots, owners


# Only what is not all zeros: a table has 256 slots, and a rail's answer stays below 2 kB. The
# types come last, so that a table that was cut lacks one.
_FOLDERS: Final = tuple(
    f"{_PORT}/{each}" for each in ("gids", "gid_attrs/ndevs", "gid_attrs/types")
)

GID_TABLE: Final = Reader(
    tool=TOOL,
    commands=(Command(("grep", "-rHsxv", ZERO, *_FOLDERS)),),
    parse=parse,
    per=Rail,
)

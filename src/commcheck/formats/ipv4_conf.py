"""How the kernel answers ARP and filters by source on each netdev, from ``/proc/sys/net``."""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import ParseError
from commcheck.formats.lines import files, only
from commcheck.lazy import dataclass, regex

TOOL: Final = "proc-ipv4"

_CONF: Final = "/proc/sys/net/ipv4/conf"
_NAMES: Final = ("arp_announce", "arp_ignore", "rp_filter")
_TAIL: Final = regex(rf"/conf/(\S+)/({'|'.join(_NAMES)})$")


@dataclass(frozen=True, slots=True)
class Ipv4Conf:
    """(netdev, setting) to value. "all" is a netdev too: the kernel takes the larger of the two."""

    values: tuple[tuple[str, str, int], ...]

    def of(self, netdev: str, name: str) -> int | None:
        """The value in force on a netdev; None where it has none."""
        found = {(each, key): value for each, key, value in self.values}
        if (netdev, name) not in found:
            return None
        return max(found[netdev, name], found.get(("all", name), 0))


def parse(output: Output) -> Ipv4Conf:
    """All three settings of every netdev."""
    text = output.text
    found: dict[tuple[str, str], int] = {}
    for match, value in files(text, _TAIL, TOOL):
        key = (match[1], match[2])
        if key in found:
            raise ParseError(TOOL, text, f"{key[1]} of {key[0]} once")
        found[key] = int(only(r"\d", value, text, TOOL)[0])
    netdevs = {netdev for netdev, _ in found}
    if "all" not in netdevs or len(found) != len(netdevs) * len(_NAMES):
        raise ParseError(TOOL, text, f"{', '.join(_NAMES)} of every netdev")
    return Ipv4Conf(tuple((*key, value) for key, value in sorted(found.items())))


IPV4_CONF: Final = Reader(
    tool=TOOL,
    commands=(Command(("grep", "-rHs", ".", _CONF, *(f"--include={name}" for name in _NAMES))),),
    parse=parse,
)

"""``ip -j -4``: addresses of the netdevs, and rules by source address."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState

TOOLS: Final = ("ip",)


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """A subnet for each rail, else the management network; the kernel's own rules."""
    links = [("lo", "127.0.0.1", 8), *addresses(host)]
    if not host.nics:
        links.append(("eth0", f"192.0.2.{host.number % 256}", 24))
    mtus = {nic.netdev: nic.mtu_bytes for nic in host.nics}
    shown = [
        {
            "ifindex": index,
            "ifname": netdev,
            "flags": ["UP", "LOWER_UP"],
            "mtu": mtus.get(netdev, 65536),
            "operstate": "UP",
            "addr_info": [
                {"family": "inet", "local": address, "prefixlen": length, "scope": "global"}
            ],
        }
        for index, (netdev, address, length) in enumerate(links, start=1)
    ]
    rules = [
        {"priority": priority, "src": "all", "table": table}
        for priority, table in ((0, "local"), (32766, "main"), (32767, "default"))
    ]
    yield Answer(("ip", "-j", "-4", "addr", "show"), _line(shown))
    yield Answer(("ip", "-j", "-4", "rule", "show"), _line(rules))


def addresses(host: HostState) -> Iterator[tuple[str, str, int]]:
    """(netdev, address, prefix length) of each rail."""
    for nic in host.nics:
        found = [gid.ipv4 for gid in nic.gids if gid.ipv4 and gid.netdev == nic.netdev]
        if nic.present and found:
            yield nic.netdev, str(found[0]), 8 if host.system.shares_subnet else 24


def _line(document: object) -> str:
    return json.dumps(document, separators=(",", ":")) + "\n"

"""``ip -j -4 addr`` and ``ip -j -4 rule``: addresses of netdevs, and rules by source address."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Interface, NetmaskValueError
from typing import Any, Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.lines import parse_json
from commcheck.lazy import dataclass

TOOL: Final = "ip"


@dataclass(frozen=True, slots=True)
class IpAddresses:
    """``addresses``: (netdev, ``10.1.0.5/24``); ``ruled``: source addresses with a table.

    ``mtus_bytes``: (netdev, MTU) of those that have an address.
    """

    addresses: tuple[tuple[str, str], ...]
    ruled: frozenset[str]
    mtus_bytes: tuple[tuple[str, int], ...] = ()

    def of(self, netdev: str) -> tuple[IPv4Interface, ...]:
        """The addresses of a netdev."""
        return tuple(IPv4Interface(text) for name, text in self.addresses if name == netdev)


def parse(addresses: Output, rules: Output) -> IpAddresses:
    """Both lists, as JSON."""
    require_ok(addresses, "ip addr")
    require_ok(rules, "ip rule")
    found: list[tuple[str, str]] = []
    mtus: list[tuple[str, int]] = []
    for link in _list(addresses):
        match link:
            case {"ifname": str(name), "addr_info": list(infos), **more}:
                found += [(name, _address(info, addresses)) for info in infos]
                if isinstance(mtu := more.get("mtu"), int):
                    mtus.append((name, mtu))
            case {}:
                pass  # some releases print {} for a netdev without an address
            case _:
                raise ParseError(TOOL, addresses.text, "ifname and addr_info of each netdev")
    ruled = set()
    for rule in _list(rules):
        match rule:
            case {"src": str(source), "table": _} if source != "all":
                ruled.add(source)
            case {"priority": _}:
                pass
            case _:
                raise ParseError(TOOL, rules.text, "rules with a priority")
    return IpAddresses(tuple(found), frozenset(ruled), tuple(mtus))


def _list(output: Output) -> list[Any]:
    document = parse_json(output, TOOL)
    if not isinstance(document, list):
        raise ParseError(TOOL, output.text, "a JSON list")
    return document


def _address(info: Any, output: Output) -> str:
    match info:
        case {"local": str(local), "prefixlen": int(length)}:
            try:
                return str(IPv4Interface(f"{local}/{length}"))
            except (AddressValueError, NetmaskValueError):
                pass
        case _:
            pass
    raise ParseError(TOOL, output.text, "local address and prefixlen")


IP_ADDRESSES: Final = Reader(
    tool=TOOL,
    commands=(
        Command((TOOL, "-j", "-4", "addr", "show")),
        Command((TOOL, "-j", "-4", "rule", "show")),
    ),
    parse=parse,
)

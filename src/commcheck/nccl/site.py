"""What the inventory says of the hosts that a log names. What it does not say stays unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final, TypeVar

from commcheck.check import Key
from commcheck.command import GLOB
from commcheck.errors import InventoryError
from commcheck.expect import LINE_RATE_GBITS, NICS, NVLINK_LINKS, yes_or_no
from commcheck.inventory.endpoint import endpoint
from commcheck.kube.place import CONTAINER_LOG
from commcheck.lazy import dataclass
from commcheck.model import Host

T = TypeVar("T")


def _names(value: object) -> tuple[str, ...]:
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise ValueError(f"wanted a list of names, not {value!r}")
    return tuple(each.strip() for each in given if each.strip())


def _pattern(value: object) -> str:
    """An absolute path, or a pattern of such, that may stand in a command; or a pod's own log."""
    text = _text(value)
    if text == CONTAINER_LOG:
        return text
    if not GLOB.fullmatch(text) or ".." in text:
        raise ValueError(f"wanted an absolute path or pattern like /var/log/nccl.*, got {text!r}")
    return text


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"wanted a text, not {value!r}")
    return value.strip()


GDR: Final[Key[bool | None]] = Key(
    name="commcheck_gdr",
    read=yes_or_no,
    defaults={"gpu-roce": True, "gpu-ib": True},
    source="GPU hosts with RDMA training NICs",
    meaning="GPU Direct RDMA is expected between the GPUs and the training NICs",
)
RAIL_ONLY: Final[Key[bool | None]] = Key(
    name="commcheck_rail_only",
    read=yes_or_no,
    meaning="the fabric connects only NICs of the same rail",
)
ECMP: Final[Key[bool | None]] = Key(
    name="commcheck_ecmp",
    read=yes_or_no,
    meaning="the fabric spreads flows over equal paths by a hash, without adaptive routing",
)
NETWORK: Final[Key[str | None]] = Key(
    name="commcheck_nccl_network",
    read=_text,
    meaning="the name that NCCL should print behind 'Using network', where a plugin is expected",
)
LOG_NAMES: Final[Key[tuple[str, ...] | None]] = Key(
    name="commcheck_log_names",
    read=_names,
    meaning="names under which the host appears in logs: pods or containers that run on it",
)
NCCL_LOG: Final[Key[str | None]] = Key(
    name="commcheck_nccl_log",
    read=_pattern,
    meaning="path or glob of a job's NCCL or HCCL logs on the host, or kubectl logs: what the "
    "container of a pod writes",
)


@dataclass(frozen=True, slots=True)
class SiteHost:
    """What is expected of one machine; None where the inventory does not say.

    ``door``: the address, where others answer at it on other ports or behind other jump hosts:
    they are containers of one machine, or machines behind one that forwards.
    """

    machine: str
    platform: str | None = None
    rdma: bool | None = None  # False: the platform has no RDMA device by design
    link: str | None = None  # "RoCE" or "IB"
    gdr: bool | None = None
    nvlink: bool | None = None
    rail_only: bool | None = None
    ecmp: bool | None = None
    nics: tuple[str, ...] | None = None
    network: str | None = None
    line_rate_gbits: int | None = None
    door: str = ""


_Way = tuple[str, int, str]
_SSH_PORT: Final = 22


@dataclass(frozen=True, slots=True)
class Site:
    """The machines by the names under which logs know them. Empty: no inventory was given.

    ``shared``: short names of several machines, which NCCL cuts at the first dot: what is expected
    of all of them alike is kept, which of them it is cannot be told.
    """

    hosts: Mapping[str, SiteHost] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()

    def of(self, host: str) -> SiteHost:
        """The machine of a log's host name; nothing is known of an unknown one."""
        return self.hosts.get(host) or SiteHost(host)

    def machine(self, host: str) -> str:
        """The machine's name: several pods may run on one."""
        known = self.hosts.get(host)
        return known.machine if known else host


def site_of(
    inventory: Mapping[str, Host] | None, platforms: Mapping[str, str] | None = None
) -> Site:
    """The inventory as far as a log audit needs it. ``platforms``: as found on hosts, by name.

    Raises ``ValueError`` with the variable's name where a value is of the wrong form.
    """
    known: dict[str, SiteHost] = {}
    ways = {name: _way(host) for name, host in (inventory or {}).items()}
    machines: dict[_Way, str] = {}
    for name, way in ways.items():
        machines.setdefault(way, name)
    doors = Counter(address for address, *_ in machines)
    by_short: dict[str, dict[str, SiteHost]] = {}
    for name, host in (inventory or {}).items():
        address, machine = ways[name][0], machines[ways[name]]
        told = _host(host, machine, (platforms or {}).get(name, ""))
        names = [name, *(_value(LOG_NAMES, host, "") or ())]
        if doors[address] > 1:
            told = replace(told, door=address)
        elif not address.replace(".", "").isdigit() and ":" not in address:
            names.append(address)
        for each in names:
            known.setdefault(each, told)
            by_short.setdefault(each.partition(".")[0], {})[machine] = told
    shared = frozenset(short for short, hosts in by_short.items() if len(hosts) > 1)
    for short, hosts in by_short.items():
        alike = {replace(told, machine=short) for told in hosts.values()}
        if short not in shared:
            known.setdefault(short, next(iter(hosts.values())))
        elif len(alike) == 1:
            known[short] = alike.pop()
        else:
            known[short] = SiteHost(short)
    return Site(known, shared)


def _way(host: Host) -> _Way:
    """The address, the port and what is passed before it; who cannot be visited has an address."""
    try:
        to = endpoint(host)
    except InventoryError:
        told = host.variables
        return str(told.get("ansible_host") or host.name), 0, f"{told.get('ansible_port') or ''}"
    return to.address, to.port or _SSH_PORT, f"{to.jumps} {to.proxy_command} {to.place}"


def _value(key: Key[T], host: Host, platform: str) -> T | None:
    try:
        return key.on(host, platform).value
    except ValueError as error:
        raise ValueError(f"{host.name}: {key.name}: {error}") from None


def _host(host: Host, machine: str, found: str) -> SiteHost:
    told = host.variables.get("commcheck_platform")
    platform = told if isinstance(told, str) and told != "unknown" else found
    return site_host(
        machine,
        platform,
        gdr=_value(GDR, host, platform),
        nvlinks=_value(NVLINK_LINKS, host, platform),
        rail_only=_value(RAIL_ONLY, host, platform),
        ecmp=_value(ECMP, host, platform),
        nics=_value(NICS, host, platform),
        network=_value(NETWORK, host, platform),
        line_rate_gbits=_value(LINE_RATE_GBITS, host, platform),
    )


def site_host(
    machine: str,
    platform: str,
    *,
    gdr: bool | None,
    nvlinks: int | None,
    rail_only: bool | None,
    nics: tuple[str, ...] | None,
    network: str | None,
    line_rate_gbits: int | None,
    ecmp: bool | None = None,
) -> SiteHost:
    """One machine's expectations from the inventory's values."""
    links: Mapping[str, str] = {"gpu-roce": "RoCE", "gpu-ib": "IB"}
    return SiteHost(
        machine=machine,
        platform=platform or None,
        rdma=True if platform in links else False if platform == "gpu-tcp" else None,
        link=links.get(platform),
        gdr=gdr,
        nvlink=None if nvlinks is None else nvlinks > 0,
        rail_only=rail_only,
        ecmp=ecmp,
        nics=nics or None,
        network=network,
        line_rate_gbits=line_rate_gbits,
    )

"""Which series are of which host: exporters name a host in many ways. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from itertools import filterfalse, islice
from typing import Final

from commcheck.command import PLACE
from commcheck.lazy import dataclass, regex
from commcheck.metrics.api import Labels, Series

LABELS: Final = (
    *("Hostname", "hostname", "node", "nodename", "node_name", "kubernetes_node"),
    *("kubernetes_io_hostname", "k8s_node_name", "host", "host_name", "exported_instance"),
    "instance",
)
"""Labels that may name a host, the most telling first. dcgm-exporter has written ``Hostname`` and
``hostname``; in a container that may be the container's, so that a later label counts then. The
others are what Prometheus' and OpenTelemetry's ways to find targets make of a node's name."""

KEPT: Final = ("gpu", "UUID", "device", "port", "modelName", "GPU_I_ID", "id")
"""Labels that tell a series of a host from the others of that host."""

_FEW: Final = 5
_PORT: Final = regex(r"\[([^\]]+)\](?::\d{1,5})?|([^:]+):(?:\d{1,5}|[a-z][a-z0-9-]*)")
"""Google's managed Prometheus writes a port's name."""

_NUMERIC: Final = regex(r"[\d.]+|[0-9a-fA-F:]*:[0-9a-fA-F:]*")


def called(labels: Labels) -> Iterator[str]:
    """The names that a series gives to its host, the most telling first, without the port."""
    for label in LABELS:
        text = labels.get(label, "")
        if text:
            match = _PORT.fullmatch(text)
            yield ((match[1] or match[2]) if match else text).lower()


def kept(labels: Labels) -> Labels:
    """The labels that a host's share keeps. They come from exporters, and are never trusted."""
    return {
        name: value[:64]
        for name in KEPT
        if (value := labels.get(name)) and (name == "modelName" or PLACE.fullmatch(value))
    }


def short(name: str) -> str:
    """The name without its domain; an address stays whole."""
    return name if _NUMERIC.fullmatch(name) else name.partition(".")[0]


@dataclass(slots=True)
class Index:
    """Series by the names of hosts. ``known``: names of the hosts that are asked about."""

    known: frozenset[str]
    by_name: dict[str, dict[str, list[Series]]] = field(default_factory=dict)
    by_short: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    known_short: dict[str, list[str]] = field(init=False)
    strayed: dict[frozenset[str], list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Known names by what they are without their domain."""
        self.known_short = defaultdict(list)
        for name in self.known:
            self.known_short[short(name)].append(name)

    def add(self, query: str, series: Iterable[Series]) -> None:
        """File the series of a query, each with the labels that tell it from its host's others."""
        for each in series:
            name = self._best(list(called(each.labels)))
            if name:
                brief = Series(kept(each.labels), each.samples)
                self.by_name.setdefault(name, {}).setdefault(query, []).append(brief)
                self.by_short[short(name)].add(name)

    def _best(self, names: Sequence[str]) -> str:
        """The first name that a host is known by; else the most telling."""
        for name in names:
            if self._is_known(name):
                return name
        return names[0] if names else ""

    def of(self, names: Iterable[str]) -> dict[str, list[Series]]:
        """By query the series of the host that has these names.

        A name without its domain counts where no two hosts share it, of the server or of those
        that are asked about.
        """
        found: dict[str, list[Series]] = {}
        taken: set[str] = set()
        all_names = dict.fromkeys(name.lower() for name in names if name)
        for name in all_names:
            mine = {name} if name in self.by_name else self.by_short.get(short(name), set())
            if len(mine) != 1 or mine <= taken:
                continue
            (one,) = mine
            if not _are_one(name, one) or self._is_anothers(one, all_names):
                continue
            taken.add(one)
            for query, series in self.by_name[one].items():
                found.setdefault(query, []).extend(series)
        return found

    def _is_known(self, name: str) -> bool:
        return any(_are_one(name, known) for known in self.known_short.get(short(name), ()))

    def strays(self, queries: Iterable[str], others: Iterable[str]) -> list[str]:
        """Some names that have series of these queries and none of the others, so that each is
        half a host, and that no host is known by.
        """
        wanted, unwanted = frozenset(queries), frozenset(others)
        if wanted not in self.strayed:
            names = (
                name
                for name, told in sorted(self.by_name.items())
                if not wanted.isdisjoint(told) and unwanted.isdisjoint(told)
            )
            self.strayed[wanted] = list(islice(filterfalse(self._is_known, names), _FEW))
        return self.strayed[wanted]

    def _is_anothers(self, name: str, names: Iterable[str]) -> bool:
        """Whether a name of the server may as well be that of another host."""
        return any(
            _are_one(known, name) and not any(_are_one(known, mine) for mine in names)
            for known in self.known_short.get(short(name), ())
        )

    @property
    def seen(self) -> list[str]:
        """Some names of hosts that the server has, for a message."""
        return sorted(self.by_name)[:_FEW]


def _are_one(name: str, other: str) -> bool:
    """False for two full names in different domains, though they begin alike."""
    return f"{name}.".startswith(f"{other}.") or f"{other}.".startswith(f"{name}.")

"""A host's share of the metrics, as it stands in its frames. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import combinations
from typing import Any, Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError, Unjudgeable
from commcheck.lazy import dataclass
from commcheck.metrics.wanted import URL

TOOL: Final = "prometheus"

_BY_CHANCE: Final = 6
"""Instants of a minute for which a GPU that was replaced still stands in a mean of five minutes."""


class TwoHosts(Unjudgeable):
    """The series of two hosts stand under one name."""


@dataclass(frozen=True, slots=True)
class Line:
    """One series of the host; None where there is no sample."""

    labels: Mapping[str, str]
    values: tuple[float | None, ...]

    @property
    def seen(self) -> list[float]:
        """The samples."""
        return [value for value in self.values if value is not None]

    @property
    def gpu(self) -> str:
        """The GPU's number, or its UUID where a relabelling has dropped that; else ``?``."""
        return self.labels.get("gpu") or self.labels.get("UUID") or "?"


@dataclass(frozen=True, slots=True)
class Metrics:
    """What monitoring knows of the host on a grid of instants (s since 1970), and was asked for.

    ``lines`` by the catalogue's names; a metric that is not exported has none. ``others``: where
    no series is the host's, some hosts that the server does know. ``strays``: where the host has
    none of a kind, some names that have, and that no host of the inventory is known by.
    """

    server: str
    names: tuple[str, ...]
    start: float
    step_s: float
    points: int
    lines: Mapping[str, tuple[Line, ...]]
    warnings: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    strays: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    selector: str = ""

    def of(self, *names: str) -> tuple[Line, ...]:
        """The series of some metrics."""
        return tuple(line for name in names for line in self.lines.get(name, ()))

    @property
    def warned(self) -> str:
        """What the server said of its own answers, to follow what is missing in them; or ""."""
        more = f" and {len(self.warnings) - 1} more" if len(self.warnings) > 1 else ""
        return f"; it warns: {self.warnings[0]}{more}" if self.warnings else ""

    def elsewhere(self, kind: str) -> str:
        """What to turn on where series of a kind are there, though under no host's name; or ""."""
        if not (names := self.strays.get(kind)):
            return ""
        return (
            f"the server has {kind} of {', '.join(names)}, which no host here is called: relabel "
            "their series to the host's name (dcgm-exporter: NODE_NAME), or say both names in "
            "commcheck_prometheus_name"
        )

    def silent_s(self, lines: Iterable[Line]) -> float:
        """For how long the newest of some series has had no sample; inf without any sample."""
        ends = [
            max(place for place, value in enumerate(line.values) if value is not None)
            for line in lines
            if line.seen
        ]
        return (self.points - 1 - max(ends)) * self.step_s if ends else math.inf


def parse(output: Output) -> Metrics:
    """The metrics. Raises what kept the server from telling, ``TwoHosts``, ``ParseError``."""
    try:
        document = json.loads(output.stdout)
        if "problem" in document:
            name, reason, remedy = map(str, document["problem"])
            raise Unjudgeable(reason, remedy, type_name=name)
        if output.rc != 0:
            raise CommandFailed(f"metrics: exit code {output.rc}: {output.complaint}")
        metrics = _metrics(document)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise ParseError(TOOL, output.stdout, "a share of metrics as commcheck writes it") from None
    _refuse_two_hosts(metrics)
    return metrics


def _refuse_two_hosts(metrics: Metrics) -> None:
    """A server of many clusters knows many a ``node-01``: two GPUs of one number tell."""
    for lines in metrics.lines.values():
        slots: dict[tuple[str, str], dict[str, list[Line]]] = {}
        for line in lines:
            if uuid := line.labels.get("UUID"):
                slot = (line.gpu, line.labels.get("GPU_I_ID", ""))
                slots.setdefault(slot, {}).setdefault(uuid, []).append(line)
        for (gpu, _), by_uuid in slots.items():
            for one, other in combinations(sorted(by_uuid), 2):
                if len(_told_at(by_uuid[one]) & _told_at(by_uuid[other])) > _BY_CHANCE:
                    raise TwoHosts(
                        f"{metrics.server} has two GPUs {gpu} of {metrics.names[0]} at once, {one} "
                        f"and {other}: hosts of two clusters share the name",
                        "set commcheck_prometheus_selector to what tells them apart, as cluster",
                    )


def _told_at(lines: Iterable[Line]) -> set[int]:
    """The instants at which one of the series has a sample."""
    return {place for line in lines for place, v in enumerate(line.values) if v is not None}


def _metrics(document: Mapping[str, Any]) -> Metrics:
    points = int(document["points"])
    return Metrics(
        server=str(document["server"]),
        names=tuple(map(str, document["names"])),
        start=float(document["start"]),
        step_s=_positive(document["step"]),
        points=points,
        lines={
            str(name): tuple(_line(labels, values, points) for labels, values in found)
            for name, found in document["series"].items()
        },
        warnings=tuple(map(str, document.get("warnings", ()))),
        others=tuple(map(str, document.get("others", ()))),
        selector=str(document.get("selector", "")),
        strays={
            str(kind): tuple(map(str, found)) for kind, found in document.get("strays", {}).items()
        },
    )


def _line(labels: Mapping[str, Any], values: Iterable[Any], points: int) -> Line:
    read = tuple(None if value is None else float(value) for value in values)
    if len(read) != points or not all(value is None or math.isfinite(value) for value in read):
        raise ValueError("not as many samples as instants")
    return Line({str(name): str(value) for name, value in labels.items()}, read)


def _positive(value: Any) -> float:
    number = float(value)
    if not 0 < number < math.inf:
        raise ValueError("no step")
    return number


LOAD_METRICS: Final = Reader(
    tool=TOOL,
    commands=(Command((TOOL, "load")),),
    parse=parse,
    varies=True,
    declared_by=URL.name,
)
"""The last half hour: how busy accelerators and links were."""

FAULT_METRICS: Final = Reader(
    tool=TOOL,
    commands=(Command((TOOL, "faults")),),
    parse=parse,
    varies=True,
    declared_by=URL.name,
)
"""The last day: errors that accelerators and NICs counted."""

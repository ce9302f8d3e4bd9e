"""One Prometheus server asked once for all its hosts; each host gets its share as a frame.

Frames are what a run keeps, so that ``judge`` and ``report`` ask nobody. The share of a host is
JSON: the grid, and by query the series with the labels that tell them apart.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from commcheck.check import FLEET, readings_of
from commcheck.collect.base import Frame, Request
from commcheck.errors import Unjudgeable
from commcheck.inventory.endpoint import endpoint
from commcheck.lazy import dataclass
from commcheck.metrics import catalog
from commcheck.metrics.access import Access
from commcheck.metrics.api import Grid, Server, ServerSilent
from commcheck.metrics.names import Index
from commcheck.metrics.wanted import NAMES, SELECTOR, URL
from commcheck.model import GPUS, Host, Machine
from commcheck.plan import HostPlan

PATIENCE_S: Final = 60.0
"""For all questions to one server: no monitoring may hold up a run for longer."""

_EXACT: Final = 2**53
_TOGETHER: Final = 2  # questions at a time to one server: an answer is large while it is read


@dataclass(frozen=True, slots=True)
class Target:
    """A server, and the part of it that is this fleet's."""

    url: str
    selector: str

    @classmethod
    def of(cls, host: Host) -> Target | None:
        """Where a host's metrics are; None where the inventory does not say."""
        url = URL.on(host, "").value
        return Target(url, SELECTOR.on(host, "").value or "") if url else None


@dataclass(slots=True)
class Told:
    """What a server told on one subject, or why it did not."""

    grid: Grid | None = None
    index: Index = field(default_factory=lambda: Index(frozenset()))
    warnings: tuple[str, ...] = ()
    problem: Unjudgeable | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Fleet:
    """What all servers told, by target and subject."""

    told: Mapping[tuple[Target, str], Told]

    def frame(self, host: Host, machine: Machine | None, request: Request) -> Frame:
        """A host's share of what its server told, as the answer to a request."""
        target, subject = Target.of(host), request.command.argv[-1]
        told = self.told.get((target, subject)) if target is not None else None
        if target is None or told is None:
            told = Told(problem=ServerSilent("the server was not asked about this host"))
        document, rc = share(told, target, names_of(host, machine)), int(told.problem is not None)
        return Frame(
            key=request.key,
            stdout=json.dumps(document, separators=(",", ":")).encode(),
            stderr=b"",
            rc=rc,
            started_s=0.0,
            ended_s=round(told.seconds, 3),
        )


def names_of(host: Host, machine: Machine | None = None) -> tuple[str, ...]:
    """The names under which a host may stand in metrics, the surest first."""
    declared = NAMES.on(host, "").value
    if declared:
        return declared
    address = endpoint(host).address
    names = (host.name, address, machine.hostname if machine else "")
    return tuple(dict.fromkeys(filter(None, names)))


def gather(
    wanted: Iterable[tuple[Host, frozenset[str]]],
    *,
    environment: Mapping[str, str] = os.environ,
    patience_s: float = PATIENCE_S,
) -> Fleet:
    """Ask every server of these hosts, each once on every subject that some host wants.

    ``wanted``: a host and the subjects that its checks read. A host that names no server is left
    out. Raises ``UsageError`` where what the environment says cannot be used. A server that does
    not answer is no exception: its hosts get the reason.
    """
    asked: dict[tuple[Target, str], tuple[set[str], set[str]]] = {}
    for host, subjects in wanted:
        target = Target.of(host)
        if target is None:
            continue
        for subject in subjects:
            families, names = asked.setdefault((target, subject), (set(), set()))
            families |= _families(host)
            names |= {name.lower() for name in names_of(host)}
    if not asked:
        return Fleet({})
    access = Access.of(environment)
    told = {key: Told(index=Index(frozenset(names))) for key, (_, names) in asked.items()}
    workers = [
        _Work(Server(target.url, access), target, catalog.SUBJECTS[subject], families,
              told[target, subject])
        for (target, subject), (families, _) in asked.items()
    ]  # fmt: skip
    threads = [threading.Thread(target=each.run, name="metrics", daemon=True) for each in workers]
    ends = time.monotonic() + patience_s
    for thread in threads:
        thread.start()
    for thread, work in zip(threads, workers, strict=True):
        thread.join(max(0.0, ends - time.monotonic()))
        work.close(patience_s)
    return Fleet(told)


def subjects_of(plan: HostPlan) -> frozenset[str]:
    """The subjects that the checks of a host read."""
    return frozenset(
        command.argv[-1]
        for asked in plan.asked
        for reading in readings_of(asked.check.seen).values()
        if reading.at == FLEET and not asked.not_permitted
        for reader in reading.reader.readers
        for command in reader.commands
    )


def _families(host: Host) -> set[str]:
    """Whose exporters a host may have."""
    platform = host.variables.get("commcheck_platform")
    if platform == "ascend":
        return {catalog.NPU}
    if platform == "gpu-efa":
        return {catalog.GPU, catalog.EFA}
    return {catalog.GPU} if platform in GPUS else {catalog.GPU, catalog.NPU, catalog.EFA}


@dataclass(slots=True)
class _Work:
    """The questions to one server on one subject."""

    server: Server
    target: Target
    subject: catalog.Subject
    families: set[str]
    told: Told
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: bool = False
    left: list[catalog.Query] = field(default_factory=list)

    def run(self) -> None:
        """Ask all; what goes wrong is kept. Nothing is added once ``close`` was called."""
        began = time.monotonic()
        try:
            grid = Grid.until(self.server.now(), self.subject.step_s, self.subject.points)
            self.left = [each for each in self.subject.queries if each.family in self.families]
            helpers = [
                threading.Thread(target=self._ask, args=(grid,), name="metrics", daemon=True)
                for _ in range(_TOGETHER - 1)
            ]
            for helper in helpers:
                helper.start()
            self._ask(grid)
            for helper in helpers:
                helper.join()
            with self.lock:
                if not self.over and self.told.problem is None:
                    self.told.grid = grid
        except Unjudgeable as error:
            self._fail(error)
        self.told.seconds = time.monotonic() - began

    def _ask(self, grid: Grid) -> None:
        while True:
            with self.lock:
                if self.over or self.told.problem is not None or not self.left:
                    return
                query = self.left.pop(0)
            try:
                answer = self.server.query_range(query.expr(self.target.selector), grid)
            except Unjudgeable as error:
                self._fail(error)
                return
            with self.lock:
                if not self.over:
                    self.told.index.add(query.name, answer.series)
                    self.told.warnings = tuple(
                        dict.fromkeys((*self.told.warnings, *answer.warnings))
                    )

    def _fail(self, error: Unjudgeable) -> None:
        with self.lock:
            if not self.over and self.told.problem is None:
                self.told.problem = error

    def close(self, patience_s: float) -> None:
        """No more is taken: what is not there now is not there."""
        with self.lock:
            self.over = True
            if self.told.grid is None and self.told.problem is None:
                self.told.problem = ServerSilent(
                    f"{self.server.url} did not answer all within {patience_s:g} s"
                )


# --- a host's share -----------------------------------------------------------------------------


def share(told: Told, target: Target | None, names: Sequence[str]) -> dict[str, Any]:
    """What one host's frame holds."""
    document: dict[str, Any] = {"server": target.url if target else "", "names": list(names)}
    if target is not None and target.selector:
        document["selector"] = target.selector
    if told.problem is not None or told.grid is None:
        problem = told.problem or ServerSilent("nothing was told")
        document["problem"] = [type(problem).__name__, problem.reason, problem.remedy]
        return document
    series = told.index.of(names)
    document |= {
        "start": told.grid.start,
        "step": told.grid.step_s,
        "points": told.grid.points,
        "series": {
            query: [[each.labels, [_digits(value) for value in each.samples]] for each in found]
            for query, found in series.items()
        },
    }
    if told.warnings:
        document["warnings"] = list(told.warnings)
    if not series:
        document["others"] = told.index.seen
    strays = {
        kind: told.index.strays(queries, _other_than(kind))
        for kind, queries in catalog.KINDS.items()
        if series.keys().isdisjoint(queries)
    }
    document["strays"] = {kind: found for kind, found in strays.items() if found}
    return document


def _other_than(kind: str) -> list[str]:
    return [query for other, queries in catalog.KINDS.items() if other != kind for query in queries]


def _digits(value: float) -> float | None:
    """Whole numbers are counters and codes, and stay exact; of the rest four digits."""
    if math.isnan(value):
        return None
    return int(value) if value.is_integer() and abs(value) < _EXACT else float(f"{value:.4g}")

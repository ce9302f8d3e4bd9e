"""Progress on stderr: a few lines for Jenkins, a live view of fixed height for a terminal."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final, Protocol, TextIO, cast

from commcheck.console import Outlet
from commcheck.diagnose import presentation
from commcheck.lazy import dataclass
from commcheck.model import Kind, Layer, Result, Status
from commcheck.report.cleaning import composed, for_console
from commcheck.report.counts import many
from commcheck.report.record import Plan
from commcheck.report.text import Look, duration

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

HEARTBEAT_S: Final = 30.0
"""Jenkins' inactivity time-outs kill a silent step."""

MAX_UNREACHED: Final = 20
"""Hosts that could not be judged whole are named up to here, then counted."""

SLOWEST: Final = 5

WHOLE: Final = 2000
"""Characters of a line: what to do about a host stands at its end."""

Clock = Callable[[], float]
"""Monotonic seconds."""

Line = tuple[str, ...]
"""Of parts, each of which is masked by itself."""


class Progress(Protocol):
    """What a run tells as it goes. Every method may be called from any thread."""

    def begin(self, plan: Plan) -> None:
        """The run starts."""

    def host_started(self, name: str) -> None:
        """A session is being opened."""

    def result(self, result: Result) -> None:
        """A check was judged on a host."""

    def host_done(self, name: str, error: str = "") -> None:
        """A session ended; ``error`` is its code, empty where it went well."""

    def note(self, text: str) -> None:
        """Something the operator should see now."""

    def finish(self) -> None:
        """The run ends; nothing is written afterwards. May be called twice."""


def progress_on(stream: TextIO, *, live: bool, quiet: bool) -> Progress:
    """``live`` for a terminal, as the caller decides; ``quiet`` for nothing at all."""
    if quiet:
        return NoProgress()
    return (LiveProgress if live else LineProgress)(stream, time.monotonic)


class NoProgress:
    """Says nothing."""

    def begin(self, plan: Plan) -> None:
        """Nothing."""

    def host_started(self, name: str) -> None:
        """Nothing."""

    def result(self, result: Result) -> None:
        """Nothing."""

    def host_done(self, name: str, error: str = "") -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def finish(self) -> None:
        """Nothing."""


@dataclass(slots=True)
class _Tally:
    """What is known so far; guarded by its owner's lock."""

    started_s: float = 0.0
    hosts: int = 0
    planned: Mapping[Layer, int] = field(default_factory=dict)
    checks: int = 0
    busy: dict[str, float] = field(default_factory=dict)
    done: int = 0
    unreached: int = 0
    cases: dict[Layer, Counter[str]] = field(
        default_factory=lambda: {layer: Counter() for layer in Layer}
    )
    seen: set[tuple[str, Status, str]] = field(default_factory=set)

    def begin(self, plan: Plan, now: float) -> None:
        planned: defaultdict[Layer, int] = defaultdict(int)
        for checks in plan.cases.values():
            for check in checks:
                planned[Layer.of(check)] += 1
        self.started_s, self.hosts, self.planned = now, len(plan.hosts), planned
        self.checks = len(plan.checks)

    def new_causes(self, result: Result) -> list[Line]:
        """Counts a result; a line for every cause that no host had before."""
        self.cases[Layer.of(result.check)][presentation(result.worst)] += 1
        lines: list[Line] = []
        for finding in result.findings:
            verdict = finding.verdict
            if verdict.status not in (Status.FAIL, Status.ERROR, Status.WARN):
                continue
            slug = verdict.cause.slug if verdict.cause else verdict.error
            if verdict.kind is Kind.HOST:
                slug = verdict.reason.partition(": ")[0]  # the code of why it was not reached
            key = (result.check, verdict.status, slug)
            if key not in self.seen:
                self.seen.add(key)
                word = verdict.status.value.upper()
                lines.append((f"{word} {result.check} on ", result.host, ": ", verdict.reason))
        return lines

    def host_done(self, name: str, error: str) -> list[Line]:
        self.busy.pop(name, None)
        self.done += 1
        if not error:
            return []
        self.unreached += 1
        if self.unreached <= MAX_UNREACHED:
            return [(name, ": ", error)]
        if self.unreached == MAX_UNREACHED + 1:
            return [(f"more than {MAX_UNREACHED} hosts could not be judged, counting on",)]
        return []

    def counts(self, now: float) -> str:
        total = sum(self.cases.values(), Counter[str]())
        words = [f"{total[word]:,} {word}" for word in ("fail", "error", "warn") if total[word]]
        parts = [
            f"{self.done:,} of {many(self.hosts, 'host')}",
            many(total.total(), "verdict") + (f" ({', '.join(words)})" if words else ""),
        ]
        if self.unreached:
            parts.append(f"{self.unreached:,} not judged whole")
        if self.busy:
            parts.append(f"{len(self.busy):,} busy")
        return ", ".join([*parts, duration(max(0.0, now - self.started_s))])


class LineProgress:
    """One line for each event that changes the picture, and a heartbeat."""

    def __init__(self, stream: TextIO, clock: Clock, *, heartbeat_s: float = HEARTBEAT_S) -> None:
        self._stream = Outlet(stream)
        self._clock = clock
        self._heartbeat_s = heartbeat_s
        self._lock = threading.Lock()
        self._tally = _Tally()
        self._over = threading.Event()
        self._heart: threading.Thread | None = None

    def begin(self, plan: Plan) -> None:
        """Says what is planned and starts the heartbeat."""
        with self._lock:
            self._tally.begin(plan, self._clock())
            self._write([(f"{many(len(plan.hosts), 'host')}, {many(len(plan.checks), 'check')}",)])
        self._heart = threading.Thread(target=self._beat, name="commcheck-heartbeat", daemon=True)
        self._heart.start()

    def host_started(self, name: str) -> None:
        """Counts it."""
        with self._lock:
            self._tally.busy[name] = self._clock()

    def result(self, result: Result) -> None:
        """A line for a cause that no host had before."""
        with self._lock:
            self._write(self._tally.new_causes(result))

    def host_done(self, name: str, error: str = "") -> None:
        """A line for a host that could not be judged whole."""
        with self._lock:
            self._write(self._tally.host_done(name, error))

    def note(self, text: str) -> None:
        """A line."""
        with self._lock:
            self._write([(text,)])

    def finish(self) -> None:
        """Stops the heartbeat and says the counts, once."""
        if self._over.is_set():
            return
        self._over.set()
        if self._heart is not None:
            self._heart.join()
        with self._lock:
            self._write([(self._tally.counts(self._clock()),)])

    def _beat(self) -> None:
        while not self._over.wait(self._heartbeat_s):
            with self._lock:
                self._write([(self._tally.counts(self._clock()),)])

    def _write(self, lines: list[Line]) -> None:
        if lines:
            self._stream.write(
                "".join(f"commcheck: {composed(*line, limit=WHOLE)}\n" for line in lines)
            )
            self._stream.flush()


class LiveProgress:
    """A view of fixed height whatever the fleet; first hosts of new causes scroll by above it."""

    def __init__(self, stream: TextIO, clock: Clock) -> None:
        self._stream = Outlet(stream)
        self._clock = clock
        self._lock = threading.Lock()
        self._tally = _Tally()
        self._live: Live | None = None

    def begin(self, plan: Plan) -> None:
        """Opens the view."""
        # Imported here: rich costs a third of the time that --help may take.
        from rich.console import Console
        from rich.live import Live

        with self._lock:
            self._tally.begin(plan, self._clock())
        console = Console(file=cast("TextIO", self._stream), highlight=False)
        self._live = Live(
            get_renderable=self._view,
            console=console,
            refresh_per_second=8,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def host_started(self, name: str) -> None:
        """Shows among the running ones, if it is slow."""
        with self._lock:
            self._tally.busy[name] = self._clock()

    def result(self, result: Result) -> None:
        """Counts it; a cause that no host had before is printed above the view."""
        with self._lock:
            lines = self._tally.new_causes(result)
        self._print(lines)

    def host_done(self, name: str, error: str = "") -> None:
        """Counts it; a host that could not be judged whole is printed above the view."""
        with self._lock:
            lines = self._tally.host_done(name, error)
        self._print(lines)

    def note(self, text: str) -> None:
        """Printed above the view."""
        self._print([(text,)])

    def finish(self) -> None:
        """Closes the view and leaves the counts."""
        live, self._live = self._live, None
        if live is None:
            return
        live.stop()
        with self._lock:
            counts = self._tally.counts(self._clock())
        live.console.print(for_console(counts), markup=False)

    def _print(self, lines: list[Line]) -> None:
        live = self._live
        if live is not None:
            # Outside our lock: rich holds its own while it calls _view.
            for line in lines:
                live.console.print(composed(*line, limit=WHOLE), markup=False)

    def _view(self) -> RenderableType:
        from rich.text import Text

        with self._lock:
            lines = _view_lines(self._tally, self._clock(), self._stream.encoding)
        return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")


def _view_lines(tally: _Tally, now: float, encoding: str) -> list[str]:
    """Always as many lines as there are layers, slow hosts and counts."""
    look = Look(glyphs="utf" in encoding.lower(), colour=False, width=80)
    lines = []
    for layer in Layer:
        cases = tally.cases[layer]
        planned = tally.planned.get(layer, 0)
        share = cases.total() / planned if planned else 0.0
        filled = round(20 * min(1.0, share))
        words = "  ".join(
            f"{look.glyph(word)} {cases[word]:,} {word}"
            for word in ("pass", "warn", "fail", "error", "gated")
            if cases[word]
        )
        lines.append(f"{layer.value:12} [{'#' * filled:20}] {words or '-'}")
    lines.append("")
    slow = sorted(tally.busy.items(), key=lambda item: item[1])[:SLOWEST]
    running = [f"  {for_console(name, 60):40} {duration(now - since)}" for name, since in slow]
    lines += running + [""] * (SLOWEST - len(running))
    lines.append(tally.counts(now))
    return lines

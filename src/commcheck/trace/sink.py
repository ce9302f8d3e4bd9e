"""Where every reader of Kineto events pours them: launches join their kernels, columns grow.

Numbers arrive as text of nanoseconds, possibly with Kineto's point (``12.345`` us), and become
integers all at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from operator import add
from typing import Final

from commcheck.lazy import dataclass
from commcheck.trace import names
from commcheck.trace.hcclnames import OF_HCCL, transfer_named
from commcheck.trace.names import Kind
from commcheck.trace.store import Device, Trace, Transfer

OPERATOR: Final = "collective_comm"
"""An operator of HCCL, as torch_npu writes it through Kineto and MSPTI (torch_npu 2.9,
csrc/profiler/mspti_activity_profiler.cpp). Other plugins call a host's call so."""

DEVICE_CATEGORIES: Final = frozenset(
    {
        *("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"),
        *("concurrent_kernel", OPERATOR),
    }
)
"""Device work. gpu_user_annotation and cuda_sync sit on streams too, and are none."""

LAUNCH_CATEGORIES: Final = frozenset(
    {
        *(
            f"{api}_{part}"
            for api in ("cuda", "xpu", "privateuse1")
            for part in ("runtime", "driver")
        ),
        "mtia_runtime",
        "Runtime",
    }
)
"""Host calls, some of which launch device work."""

PENDING_MOST: Final = 200_000
"""Launches, and kernels, that wait for each other. CUDA queues 1,024 launches and CUPTI delivers
buffers of some 50,000 records, so that a partner is never this far away in Kineto's own order."""

Row = tuple[bytes, bytes, bytes, bytes]
"""Beginning (see ``Sink.feed``), ts, dur, correlation ("" where there is none)."""

Key = tuple[str, str, str, str]
"""Category, name, pid, tid."""

_NOTE, _NOTHING = -1, -2
_LAUNCH: Final = -10
"""Meanings from here down are launches, one for each thread of the host."""
_GRAPH: Final = -1_000_000
"""And from here down launches of many kernels at once."""
_UNKNOWN: Final = (-1, -1, -1)

_Launch = tuple[int, int, int]
"""Start, end, number of the thread."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """Events of one device on their way into its columns."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    launches: list[_Launch] = field(default_factory=list)


class _Meanings(dict[bytes, int]):
    """What beginnings mean, each learnt when it is first seen."""

    def __init__(self, learn: Callable[[bytes], int]) -> None:
        super().__init__()
        self._learn = learn

    def __missing__(self, beginning: bytes) -> int:
        meaning = self[beginning] = self._learn(beginning)
        return meaning


class Sink:
    """Joins device events with their launches by correlation, in whatever order they come.

    ``key_of`` understands a beginning; those made by ``beginning`` are known already.
    """

    def __init__(self, trace: Trace, key_of: Callable[[bytes], Key]) -> None:
        self._trace = trace
        self._meanings = _Meanings(lambda beginning: self._learn(beginning, key_of(beginning)))
        self._keys: dict[bytes, Key] = {}
        self._threads: dict[int, int] = {}  # by meaning
        self._batch_of: dict[int, _Batch] = {}  # by code
        self._batches: dict[str, _Batch] = {}  # by device
        self._launches: dict[bytes, _Launch] = {}
        self._graphs: dict[bytes, _Launch] = {}
        self._waiting: dict[bytes, list[tuple[Device, int]]] = {}
        self._operators: dict[int, Transfer] = {}  # by code

    def beginning(self, key: Key) -> bytes:
        """A beginning for an event that was not found in the text but read."""
        made = repr(key).encode()
        if made not in self._meanings:
            self._meanings[made] = self._learn(made, key)
        return made

    def _learn(self, beginning: bytes, key: Key) -> int:
        category, name, pid, tid = key
        operator = transfer_named(name) if category == OPERATOR else None
        if (category == OPERATOR and operator is None) or OF_HCCL.search(name):
            return _NOTHING
        if category in DEVICE_CATEGORIES:
            kind = Kind.COMM if operator else self._trace.kind_of(category, name)
            code = self._trace.code(kind, name, pid, tid)
            if operator is not None:
                self._operators[code] = operator
                self._trace.backend = self._trace.backend or "hccl"
            self._batch_of[code] = self._batches.setdefault(pid, _Batch())
            return code
        if category == "user_annotation":
            self._keys[beginning] = key
            return _NOTE
        if category in LAUNCH_CATEGORIES and names.LAUNCH.search(name):
            thread = self._trace.thread(pid, tid)
            meaning = (_GRAPH if "graph" in name.lower() else _LAUNCH) - thread
            self._threads[meaning] = thread
            return meaning
        return _NOTHING

    def feed(self, rows: Sequence[Row], moved: Mapping[bytes, tuple[Transfer, int]]) -> int:
        """Take events, and by correlation what they moved. How many have no beginning."""
        fit = [row for row in rows if row[0]]
        if fit:
            beginnings, ts, dur, correlations = zip(*fit, strict=True)
            starts = _numbers(ts)
            ends = list(map(add, starts, _numbers(dur)))
            meanings = list(map(self._meanings.__getitem__, beginnings))
            self._take(zip(meanings, correlations, starts, ends, strict=True), moved)
            for at in (at for at, meaning in enumerate(meanings) if meaning == _NOTE):
                _, name, pid, tid = self._keys[beginnings[at]]
                self._trace.annotate(name, starts[at], ends[at], self._trace.thread(pid, tid))
        self._flush()
        return len(rows) - len(fit)

    def _take(
        self,
        events: Iterable[tuple[int, bytes, int, int]],
        moved: Mapping[bytes, tuple[Transfer, int]],
    ) -> None:
        """Join launches and device work, by meaning, correlation, start and end."""
        launches, waiting, batch_of = self._launches, self._waiting, self._batch_of
        operators = self._operators
        take = launches.pop
        for meaning, correlation, start, end in events:
            if meaning >= 0:
                launch = take(correlation, None)
                if launch is None:
                    launch = self._graphs.get(correlation, _UNKNOWN)
                    if launch is _UNKNOWN and correlation:
                        self._wait(meaning, correlation)
                if moved and correlation in moved:
                    self._move(meaning, moved[correlation])
                elif operators and meaning in operators:
                    self._move(meaning, (operators[meaning], -1))
                batch = batch_of[meaning]
                batch.starts.append(start)
                batch.ends.append(end)
                batch.codes.append(meaning)
                batch.launches.append(launch)
            elif meaning <= _LAUNCH:
                launch = (start, end, self._threads[meaning])
                if meaning <= _GRAPH:
                    self._graphs[correlation] = launch
                if waiting and correlation in waiting:
                    self._arrive(correlation, launch)
                elif meaning > _GRAPH:
                    launches[correlation] = launch

    def _next(self, meaning: int) -> tuple[Device, int]:
        device = self._trace.device(self._trace.codes[meaning].device)
        return device, len(device.start) + len(self._batch_of[meaning].codes)

    def _move(self, meaning: int, what: tuple[Transfer, int]) -> None:
        if self._trace.codes[meaning].kind is Kind.COMM:
            device, index = self._next(meaning)
            device.transfers[index] = what

    def _wait(self, meaning: int, correlation: bytes) -> None:
        if len(self._waiting) < PENDING_MOST:
            self._waiting.setdefault(correlation, []).append(self._next(meaning))

    def _arrive(self, correlation: bytes, launch: _Launch) -> None:
        """A launch whose kernels were written before it."""
        self._flush()
        for device, index in self._waiting.pop(correlation):
            device.launch_start[index], device.launch_end[index], device.thread[index] = launch

    def _flush(self) -> None:
        for name, batch in self._batches.items():
            if not batch.codes:
                continue
            device = self._trace.device(name)
            # An array made of a list and added is three times as fast as one that is extended.
            device.start += array("q", batch.starts)
            device.end += array("q", batch.ends)
            device.code += array("i", batch.codes)
            starts, ends, threads = zip(*batch.launches, strict=True)
            device.launch_start += array("q", starts)
            device.launch_end += array("q", ends)
            device.thread += array("i", threads)
            for column in (batch.starts, batch.ends, batch.codes, batch.launches):
                column.clear()
        if len(self._launches) > PENDING_MOST:
            for correlation in list(self._launches)[: PENDING_MOST // 2]:
                del self._launches[correlation]


def _numbers(texts: Iterable[bytes]) -> list[int]:
    """Times as text, with Kineto's point or without, as nanoseconds."""
    return list(map(int, b" ".join(texts).replace(b".", b"").split()))

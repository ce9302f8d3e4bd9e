"""Where every reader of Kineto events pours them: launches join their kernels, columns grow.

Numbers arrive as text of nanoseconds, possibly with Kineto's point (``12.345`` us), and become
integers all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from commcheck.trace import names
from commcheck.trace.names import Kind
from commcheck.trace.store import Device, Trace, Transfer

DEVICE_CATEGORIES: Final = frozenset(
    {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset", "concurrent_kernel"}
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

_NOTE, _NOTHING, _MISFIT = -1, -2, -3
_LAUNCH: Final = -10
"""Meanings from here down are launches, one for each thread of the host."""
_GRAPH: Final = -1_000_000
"""And from here down launches of many kernels at once."""
_UNKNOWN: Final = (b"-1", b"0", b"-1")


_Launch = tuple[bytes, bytes, bytes]
"""ts, dur, number of the thread."""


class _Meanings(dict[bytes, int]):
    """What beginnings mean, each learnt when it is first seen."""

    def __init__(self, learn: Callable[[bytes], int]) -> None:
        super().__init__({b"": _MISFIT})
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
        self._key_of = key_of
        self._meanings = _Meanings(lambda beginning: self._learn(beginning, key_of(beginning)))
        self._keys: dict[bytes, Key] = {}
        self._threads: dict[int, bytes] = {}  # by meaning
        self._rows: dict[int, list[bytes]] = {}  # by code: the batch of its device
        self._codes: dict[int, list[int]] = {}
        self._batches: dict[str, tuple[list[bytes], list[int]]] = {}
        self._launches: dict[bytes, _Launch] = {}
        self._graphs: dict[bytes, _Launch] = {}
        self._waiting: dict[bytes, list[tuple[Device, int]]] = {}

    def beginning(self, key: Key) -> bytes:
        """A beginning for an event that was not found in the text but read."""
        made = repr(key).encode()
        if made not in self._meanings:
            self._meanings[made] = self._learn(made, key)
        return made

    def _learn(self, beginning: bytes, key: Key) -> int:
        category, name, pid, tid = key
        if category in DEVICE_CATEGORIES:
            kind = self._trace.kind_of(category, name)
            code = self._trace.code(kind, name, pid, tid)
            self._rows[code], self._codes[code] = self._batches.setdefault(pid, ([], []))
            return code
        if category == "user_annotation":
            self._keys[beginning] = key
            return _NOTE
        if category in LAUNCH_CATEGORIES and names.LAUNCH.search(name):
            thread = self._trace.thread(pid, tid)
            meaning = (_GRAPH if "graph" in name.lower() else _LAUNCH) - thread
            self._threads[meaning] = b"%d" % thread
            return meaning
        return _NOTHING

    def feed(self, rows: Iterable[Row], moved: Mapping[bytes, tuple[Transfer, int]]) -> int:
        """Take events, and by correlation what they moved. How many have no beginning."""
        meanings, launches, waiting = self._meanings, self._launches, self._waiting
        all_rows, all_codes = self._rows, self._codes
        take = launches.pop
        misfits = 0
        for beginning, ts, dur, correlation in rows:
            meaning = meanings[beginning]
            if meaning >= 0:
                launch = take(correlation, None)
                if launch is None:
                    launch = self._graphs.get(correlation, _UNKNOWN)
                    if launch is _UNKNOWN and correlation:
                        self._wait(meaning, correlation)
                if moved and correlation in moved:
                    self._move(meaning, moved[correlation])
                all_rows[meaning] += (ts, dur, *launch)
                all_codes[meaning].append(meaning)
            elif meaning <= _LAUNCH:
                launch = (ts, dur, self._threads[meaning])
                if meaning <= _GRAPH:
                    self._graphs[correlation] = launch
                if waiting and correlation in waiting:
                    self._arrive(correlation, launch)
                elif meaning > _GRAPH:
                    launches[correlation] = launch
            elif meaning == _NOTE:
                _, name, pid, tid = self._keys[beginning]
                start = _ns(ts)
                thread = self._trace.thread(pid, tid)
                self._trace.annotate(name, start, start + _ns(dur), thread)
            elif meaning == _MISFIT:
                misfits += 1
        self._flush()
        return misfits

    def _next(self, meaning: int) -> tuple[Device, int]:
        device = self._trace.device(self._trace.codes[meaning].device)
        return device, len(device.start) + len(self._codes[meaning])

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
        start, thread = _ns(launch[0]), int(launch[2])
        for device, index in self._waiting.pop(correlation):
            device.launch_start[index] = start
            device.launch_end[index] = start + _ns(launch[1])
            device.thread[index] = thread

    def _flush(self) -> None:
        for name, (rows, codes) in self._batches.items():
            if not codes:
                continue
            device = self._trace.device(name)
            numbers = list(map(int, b" ".join(rows).replace(b".", b"").split()))
            starts, launches = numbers[0::5], numbers[2::5]
            device.start.extend(starts)
            device.end.extend(map(int.__add__, starts, numbers[1::5]))
            device.launch_start.extend(launches)
            device.launch_end.extend(map(int.__add__, launches, numbers[3::5]))
            device.thread.extend(numbers[4::5])
            device.code.extend(codes)
            rows.clear()
            codes.clear()
        if len(self._launches) > PENDING_MOST:
            for correlation in list(self._launches)[: PENDING_MOST // 2]:
                del self._launches[correlation]


def _ns(text: bytes) -> int:
    return int(text.replace(b".", b""))

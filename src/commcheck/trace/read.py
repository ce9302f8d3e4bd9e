"""One trace file, whatever its layout, into a ``Trace``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Final

from commcheck.files import rank_named
from commcheck.lazy import regex
from commcheck.trace import ascend, chrome, kineto, names
from commcheck.trace.source import (
    EXPECTED,
    Foreign,
    Held,
    Keys,
    Source,
    blocks,
    cut,
    size_of,
    split_head,
    tail_keys,
)
from commcheck.trace.store import Progress, Trace

_INFO: Final = regex(r"profiler_info_(\d+)\.json")
_WORKER: Final = regex(r"(?P<host>.+)_\d+_\d{14,20}_ascend_(?:pt|ms)")


def no_progress(_count: int) -> None:
    """Nobody watches."""


def read(path: Source, progress: Progress = no_progress, extra: tuple[str, ...] = ()) -> Trace:
    """The trace in a file. ``extra``: patterns of communication kernels beyond the known ones.

    Raises ``Foreign``, one line, for a file that is no trace, is broken, or is cut: device events
    stand last in a trace, so a cut one would look as if the device had been idle.
    """
    trace = Trace(path.name, comm=names.comm_pattern(extra))
    stream = blocks(path, progress)
    keys, first = split_head(path, stream)
    while len(first) < 1 << 16 and (block := next(stream, b"")):
        first += block
    layout = kineto.layout_of(first) if keys is not None else None
    if layout is not None:
        trace.read_head({**(keys or {}), **kineto.scan(path, first, stream, layout, trace)})
    else:
        _read_slowly(path, keys, first, stream, trace)
    if not any(len(device.start) for device in trace.devices.values()):
        _read_cpu(path, trace)
    if trace.rank is None:
        trace.rank = rank_beside(path)
    trace.host = trace.host or host_of(path)
    return trace


def _read_slowly(
    path: Source, keys: Keys | None, first: bytes, stream: Iterator[bytes], trace: Trace
) -> None:
    rest: list[bytes] = []
    found = chrome.events(path, first, stream, rest)
    if keys is None:
        found, is_ascend = _looks_ascend(found)
        (ascend.scan if is_ascend else chrome.scan)(path, found, trace)
        tail: Keys | None = {}
    else:
        chrome.scan(path, found, trace)
        tail = tail_keys(b"".join(rest))
    if tail is None:
        raise Foreign(str(path), cut(size_of(path)))
    trace.read_head({**(keys or {}), **tail})


def _looks_ascend(found: Iterator[chrome.Event]) -> tuple[Iterator[chrome.Event], bool]:
    """The events again, and whether torch_npu wrote them: its times are text, devices lack cat."""
    seen = []
    for event in found:
        seen.append(event)
        if event.get("ph") == "X" or len(seen) > 10_000:
            break
    rows = {
        str(args.get("name"))
        for event in seen
        if event.get("ph") == "M" and isinstance(args := event.get("args"), dict)
    }
    known = bool(rows & {"Ascend Hardware", "CANN", "HCCL", "Overlap Analysis"})

    def again() -> Iterator[chrome.Event]:
        yield from seen
        yield from found

    return again(), known


def _read_cpu(path: Source, trace: Trace) -> None:
    """No device at all: where collectives run on the host, its operators are the computing."""
    if not trace.host_comm:
        if not trace.annotations and not trace.records:
            raise Foreign(str(path), f"holds no kernel and no operator of training; {EXPECTED}")
        return
    trace.layout = "cpu"
    stream = blocks(path, no_progress)
    _, first = split_head(path, stream)
    chrome.scan_cpu(path, chrome.events(path, first, stream, []), trace)
    device = trace.device("cpu")
    for name, start, end, thread in trace.host_comm:
        code = trace.code(names.Kind.COMM, name, "cpu", f"thread {thread}")
        device.add(start, end, code, (start, end))


def rank_beside(path: Source) -> int | None:
    """The rank that the name of the file or of its folder tells, or the file torch_npu writes
    beside it."""
    named = rank_named(str(path))
    if named is not None or isinstance(path, Held):
        return named
    for folder in Path(os.path.realpath(path)).parents[:2]:
        for each in sorted(folder.glob("profiler_info_*.json")):
            info = _INFO.fullmatch(each.name)
            if info:
                return int(info[1])
    return None


def host_of(path: Source) -> str:
    """The host in the name of a folder of torch_npu or MindSpore: HOST_PID_TIME_ascend_pt."""
    for folder in PurePath(os.path.realpath(str(path))).parents[:2]:
        found = _WORKER.fullmatch(folder.name)
        if found:
            return found["host"]
    return ""

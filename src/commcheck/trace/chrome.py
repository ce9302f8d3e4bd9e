"""Any trace in Chrome's format, event by event: unknown layouts, begin and end events, the CPU.

Four times slower than ``kineto``, and right for whatever is sound JSON.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from commcheck.lazy import regex
from commcheck.trace.kineto import row_of, take_collective
from commcheck.trace.microseconds import nanoseconds
from commcheck.trace.names import CPU_WORK, Kind
from commcheck.trace.sink import DEVICE_CATEGORIES, LAUNCH_CATEGORIES, Key, Row, Sink
from commcheck.trace.source import TAIL_MOST, Foreign, Source, cut
from commcheck.trace.store import DECODER, Trace, Transfer

_WANTED: Final = DEVICE_CATEGORIES | LAUNCH_CATEGORIES | {"user_annotation", "cpu_op"}
_BETWEEN: Final = regex(r"[\s,]*")
_EVENT_MOST: Final = 4 << 20
"""Characters of one event: with its call stack it has some thousands."""

Event = dict[str, Any]


def events(
    path: Source, first: bytes, stream: Iterator[bytes], rest: list[bytes]
) -> Iterator[Event]:
    """Every event of the list whose text begins with ``first``, and then what follows the list.

    Numbers with a point are text. The text after the list's end is put into ``rest``. Raises
    ``Foreign`` for a list that is broken or cut.
    """
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    text = ""
    at = passed = 0
    ends_well = True
    for block in chain((first,), stream):
        passed += len(block)
        text = text[at:] + decode(block)
        at = 0
        while True:
            at = _past(text, at)
            if text[at : at + 1] == "]":
                _keep(path, text[at:].encode(), stream, rest)
                return
            # An event that the block cuts off is tried again with the next block.
            try:
                event, at = DECODER.raw_decode(text, at)
            except json.JSONDecodeError as error:
                ends_well = error.pos >= len(text) - 1 or error.msg.startswith("Unterminated")
                if len(text) - at > _EVENT_MOST:
                    what = f"has an event that is no JSON: {text[at : at + 60]!r}"
                    raise Foreign(str(path), what) from None
                break
            except (ValueError, RecursionError):  # a number or a nesting without end
                what = f"has an event that nobody can read: {text[at : at + 60]!r}"
                raise Foreign(str(path), what) from None
            if not isinstance(event, dict):
                raise Foreign(str(path), f"has {str(event)[:40]!r} in its list of events")
            yield event
    if not ends_well:
        raise Foreign(str(path), f"has an event that is no JSON: {text[at : at + 60]!r}")
    raise Foreign(str(path), cut(passed))


def _keep(path: Source, first: bytes, stream: Iterator[bytes], rest: list[bytes]) -> None:
    """All that follows the list's end, where it has the size of a few keys."""
    size = 0
    for block in chain((first,), stream):
        rest.append(block)
        size += len(block)
        if size > TAIL_MOST:
            what = f"has more than {TAIL_MOST >> 20} MiB behind its events"
            raise Foreign(str(path), what)


def _past(text: str, at: int) -> int:
    """The place after blanks and commas."""
    found = _BETWEEN.match(text, at)
    return found.end() if found else at


def scan(path: Source, found: Iterator[Event], trace: Trace) -> None:
    """Read Kineto's events into ``trace``, whatever their layout."""
    sink = Sink(trace, _no_key)
    rows: list[Row] = []
    moved: dict[bytes, tuple[Transfer, int]] = {}
    for event in closed(path, found):
        if str(event.get("cat")) not in _WANTED:
            continue
        try:
            take_collective(event, trace, moved)
            rows.append(row_of(event, sink))
        except ValueError as error:
            raise Foreign(str(path), f"has an event without a time: {error}") from None
        if len(rows) >= 4096:
            sink.feed(rows, moved)
            rows.clear()
            moved.clear()
    sink.feed(rows, moved)


def scan_cpu(path: Source, found: Iterator[Event], trace: Trace) -> None:
    """Read the operators of the host as those of a device named ``cpu``.

    The threads that communicate are told by the collectives on them, which ``trace`` holds.
    """
    works: dict[str, bool] = {}
    # gloo sends and receives on the thread that trains, and does all else on threads of its own.
    talking = {each.thread for each in trace.host_comm} - {each.thread for each in trace.steps}
    device = trace.device("cpu")
    compute = trace.code(Kind.COMPUTE, "operators", "cpu", "host")
    for event in closed(path, found):
        if event.get("cat") != "cpu_op":
            continue
        name = str(event.get("name"))
        if name not in works:
            works[name] = bool(CPU_WORK.search(name))
        if not works[name]:
            continue
        if trace.thread(str(event.get("pid")), str(event.get("tid"))) not in talking:
            start, end = times(path, event)
            device.add(start, end, compute, (start, end))


def closed(path: Source, found: Iterator[Event]) -> Iterator[Event]:
    """Complete events; begin and end events are joined, as a stack for each thread, by time.

    A begin without its end is left out: nothing tells how long it was.
    """
    halves: dict[tuple[str, str], list[tuple[int, int, Event]]] = {}
    for event in found:
        phase = event.get("ph")
        if phase == "X":
            yield event
        elif phase in ("B", "E"):
            at = times(path, {**event, "dur": 0})[0]
            mine = halves.setdefault((str(event.get("pid")), str(event.get("tid"))), [])
            # Of what ends and begins at one moment the end comes first.
            mine.append((at, phase == "B", event))
    for mine in halves.values():
        mine.sort(key=lambda half: half[:2])
        stack: list[tuple[int, Event]] = []
        for at, begins, event in mine:
            if begins:
                stack.append((at, event))
            elif (place := _opened(stack, event)) is not None:
                start, opened = stack.pop(place)
                yield {**opened, "ph": "X", "dur": _microseconds(at - start)}


def _opened(stack: list[tuple[int, Event]], event: Event) -> int | None:
    """The begin that an end closes: the last open one, of its name where the end has a name."""
    if "name" not in event:
        return len(stack) - 1 if stack else None
    told = (event["name"], event.get("cat"))
    places = range(len(stack) - 1, -1, -1)
    return next(
        (at for at in places if (stack[at][1].get("name"), stack[at][1].get("cat")) == told), None
    )


def times(path: Source, event: Event) -> tuple[int, int]:
    """Start and end of an event in ns. Raises ``Foreign`` where it has none."""
    try:
        start = nanoseconds(str(event.get("ts")))
        return start, start + nanoseconds(str(event.get("dur")))
    except ValueError as error:
        raise Foreign(str(path), f"has an event without a time: {error}") from None


def _microseconds(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def _no_key(beginning: bytes) -> Key:
    raise KeyError(beginning)

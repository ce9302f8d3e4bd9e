"""The fast way through a Kineto trace: search the text for the few events that count.

Building an object for every event is what makes trace readers slow, and nine of ten events are of
no use here. One expression finds device events, launches and annotations in a block; equal
beginnings (category, name, device, stream) are understood once; and numbers are converted all at
once. An event that the expression does not fit is read as JSON, so speed never costs an event.

Kineto writes ``ph cat name pid tid ts dur args`` in this order in every version known (2019 to
torch 2.13); ``layout_of`` looks at the first events of a file; any other is one for ``chrome``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, Final, NamedTuple

from commcheck.lazy import regex
from commcheck.trace.microseconds import nanoseconds
from commcheck.trace.sink import Key, Row, Sink
from commcheck.trace.source import HEAD_MOST, Foreign, Keys, Source, cut, size_of, tail_keys
from commcheck.trace.store import DECODER, Record, Trace, Transfer, seq_of, transfer_of

_WANTED: Final = (
    # ``sink`` knows the exact names; here a category too many does no harm. The commonest first.
    r"(?:kernel|cuda_runtime|cuda_driver|gpu_mem...|user_annotation|xpu_\w+|privateuse1_\w+"
    r"|mtia_runtime|Kernel|Mem...|Runtime|concurrent_kernel|collective_comm)"
)
_EVENT: Final = (
    # Each @ stands for blanks: those that the file has there.
    # A name is looked for up to any quote: where that is an escaped one the event does not fit.
    rf'(?:({_WANTED}",@"name":@"[^"]*",@"pid":@\d+,@"tid":@\d+),@'
    r'"ts":@([1-4]?\d{1,15}\.\d{3}),@"dur":@(\d{1,12}\.\d{3})\b(?:[^}]*"correlation":\s*(\d+))?'
    # An event that counts and does not fit must be found all the same.
    rf'|{_WANTED}")'
)
_BLANKS: Final = regex(
    rb'"ph":\s*"X",\s*"cat":\s*"\w+",(\s*)"name":(\s*)"(?:[^"\\]|\\.)*",(\s*)"pid":(\s*)\d+,(\s*)'
    rb'"tid":(\s*)\d+,(\s*)"ts":(\s*)[\d.]+,(\s*)"dur":(\s*)\d'
)
_BEGINNING: Final = regex(rb'(\w+)",\s*"name":\s*"([^"]*)",\s*"pid":\s*(\d+),\s*"tid":\s*(\d+)')
_LOOSE: Final = regex(
    # Older Kineto does not escape quotes in names; such a file is no JSON, but can be read.
    r'(\w+)",\s*"name":\s*"(.*?)",\s*"pid":\s*(\d+),\s*"tid":\s*"?([^",]*)"?,\s*'
    r'"ts":\s*"?([\d.]+)"?\s*,\s*"dur":\s*"?([\d.]+)"?(?:[^}]*"correlation":\s*(\d+))?',
    re.DOTALL,
)
_X: Final = regex(rb'"ph":\s*"X"')
_ORDER: Final = regex(rb'"ph":\s*"X",\s*("cat":\s*")\w+",\s*"name":\s*"')
_NESTED: Final = regex(rb'"ph":\s*"[BE]"')
_COLLECTIVE: Final = b'"Collective name"'
_CALL: Final = b'"record_param_comms"'
_RANKS: Final = regex(rb'"Process Group Ranks":\s*"[^"]*"')
_CORRELATION: Final = regex(rb'"correlation":\s*(\d+)')
_SEQ: Final = regex(rb'"Seq":\s*(\d+)')
_TIMES: Final = regex(rb'"ts":\s*([\d.]+)\s*,\s*"dur":\s*([\d.]+)')
_TAIL: Final = 1 << 18


class Layout(NamedTuple):
    """How a file writes its events: the text that begins a category, and the expression."""

    token: bytes
    event: re.Pattern[bytes]


def layout_of(head: bytes) -> Layout | None:
    """The layout, where the first events are written as Kineto does it.

    None where they are not, or where they are begin and end events.
    """
    whole = head[: head.rfind(b'"ph"')]
    found = _ORDER.findall(whole)
    if not found or _NESTED.search(head) or len(set(found)) > 1:
        return None
    if len(found) != len(_X.findall(whole)):
        return None
    blanks = set(_BLANKS.findall(whole))
    # One form of blanks, as Kineto writes them, need not be looked for as any blanks.
    return Layout(found[0], _expression(found[0], blanks.pop() if len(blanks) == 1 else ()))


def _expression(token: bytes, blanks: Iterable[bytes] = ()) -> re.Pattern[bytes]:
    """For events with these blanks; without any told, for those with any."""
    told = [re.escape(each.decode()) for each in blanks]
    event = re.sub("@", lambda _: told.pop(0) if told else r"\s*", _EVENT)
    return re.compile(re.escape(token) + event.encode())


def scan(path: Source, first: bytes, stream: Iterator[bytes], layout: Layout, trace: Trace) -> Keys:
    """Read all events into ``trace``. Returns the keys that stand behind the events.

    Raises ``Foreign`` for an event that is neither in Kineto's layout nor JSON, and for a file
    that is cut.
    """
    reader = _Scanner(path, layout, trace)
    token = layout.token
    carry = before = last = b""
    for block in chain((first,), stream):
        # Whole blocks are not joined: that would copy the file twice.
        before = (before + last)[-_TAIL:] if len(block) < _TAIL else last
        last = block
        text = carry + block
        edge = text.rfind(token)
        if edge > 0:
            reader.read(text, edge)
            text = text[edge:]
        elif len(text) > 16 * HEAD_MOST:
            raise Foreign(str(path), f"has no event in {len(text):,} bytes, and is broken there")
        carry = text
    keys = tail_keys((before + last)[-_TAIL:])
    if keys is None:
        raise Foreign(str(path), cut(size_of(path)))
    reader.read(carry, len(carry))
    return keys


class _Scanner:
    """Finds the events of whole blocks and feeds them to a ``Sink``."""

    def __init__(self, path: Source, layout: Layout, trace: Trace) -> None:
        self._path = path
        self._token, self._events = layout
        self._trace = trace
        self._sink = Sink(trace, _key)
        self._moves: dict[bytes, Transfer | None] = {}

    def read(self, text: bytes, edge: int) -> None:
        """All events that begin before ``edge``; the last of them must end in ``text``."""
        moved: dict[bytes, tuple[Transfer, int]] = {}
        at = -1
        while (at := text.find(_COLLECTIVE, at + 1, edge)) >= 0:
            self._collective(text, at, moved)
        rows = self._events.findall(text, 0, edge)
        if odd := self._sink.feed(rows, moved):
            for found in self._events.finditer(text, 0, edge):
                if found[1] is None:
                    self._odd(text, found.start() + len(self._token), moved)
            if 2 * odd > len(rows):  # some old versions write each category in its own way
                self._events = _expression(self._token)

    def _odd(self, text: bytes, at: int, moved: dict[bytes, tuple[Transfer, int]]) -> None:
        """An event that does not fit, from the text behind its category's opening quote."""
        end = text.find(self._token, at)
        piece = text[at : end if end >= 0 else len(text)].decode("utf-8", "replace")
        try:
            event, _ = DECODER.raw_decode('{"cat": "' + piece)
        except (ValueError, RecursionError):
            loose = _LOOSE.match(piece)
            if loose is None:
                what = f"has an event that is no JSON: {piece[:60]!r}"
                raise Foreign(str(self._path), what) from None
            event = dict(
                zip(("cat", "name", "pid", "tid", "ts", "dur"), loose.groups(), strict=False)
            )
            event["args"] = {} if loose[7] is None else {"correlation": loose[7]}
        if "dur" not in event:
            return
        try:
            row = row_of(event, self._sink)
        except ValueError as error:
            raise Foreign(str(self._path), f"has an event without a time: {error}") from None
        self._sink.feed([row], moved)

    def _collective(self, text: bytes, at: int, moved: dict[bytes, tuple[Transfer, int]]) -> None:
        """The collective whose arguments stand at ``at``: by correlation, or as a record."""
        begin = max(0, text.rfind(self._token, 0, at))
        event = text[begin : text.find(b"}", at) + 1]
        try:
            if not self._plain_collective(event, at - begin, moved):
                read, _ = DECODER.raw_decode("{" + event.decode("utf-8", "replace") + "}")
                take_collective(read, self._trace, moved)
        except (ValueError, RecursionError):
            return  # a name with a bare quote, or damage: it counts for time, not for bytes

    def _plain_collective(
        self, event: bytes, at: int, moved: dict[bytes, tuple[Transfer, int]]
    ) -> bool:
        """The same without reading all of it; equal arguments, from ``at``, are understood once."""
        ranks, correlation = _RANKS.search(event, at), _CORRELATION.search(event)
        times = _TIMES.search(event) if correlation is None and _CALL in event else None
        if ranks is None or (correlation is None and times is None):
            return False
        text = event[at : ranks.end()]
        if text not in self._moves:
            self._moves[text] = transfer_of(json.loads(b"{" + text + b"}"))
        transfer = self._moves[text]
        seq = _SEQ.search(event)
        number = int(seq[1]) if seq else -1
        if transfer is None:
            return True
        if correlation is not None:
            moved[correlation[1]] = (transfer, number)
        elif times is not None:
            start = nanoseconds(times[1].decode())
            end = start + nanoseconds(times[2].decode())
            self._trace.records.append(Record(start, end, transfer, number))
        return True


def _key(beginning: bytes) -> Key:
    found = _BEGINNING.match(beginning)
    if found is None:
        raise ValueError(f"no beginning of an event: {beginning!r}")
    category, name, pid, tid = (each.decode("utf-8", "replace") for each in found.groups())
    if "\\" in name:
        with suppress(ValueError):  # of old Kineto, which escapes nothing
            name = json.loads(f'"{name}"')
    return category, name, pid, tid


def take_collective(
    event: dict[str, Any], trace: Trace, moved: dict[bytes, tuple[Transfer, int]]
) -> None:
    """Keep the collective of an event: of a host call as a record, else by its correlation."""
    args = event.get("args")
    if not isinstance(args, dict):
        return
    transfer = transfer_of(args)
    if transfer is None:
        return
    if event.get("name") == "record_param_comms":
        start = nanoseconds(str(event.get("ts")))
        end = start + nanoseconds(str(event.get("dur", 0)))
        trace.records.append(Record(start, end, transfer, seq_of(args)))
    elif "correlation" in args:
        moved[str(args["correlation"]).encode()] = (transfer, seq_of(args))


def row_of(event: dict[str, Any], sink: Sink) -> Row:
    """The row of one event that was read as JSON. Raises ``ValueError`` for times that are none."""
    category, name, pid, tid = (str(event.get(each, "")) for each in ("cat", "name", "pid", "tid"))
    args = event.get("args")
    correlation = args.get("correlation") if isinstance(args, dict) else None
    return (
        sink.beginning((category, name, pid, tid)),
        b"%d" % nanoseconds(str(event.get("ts"))),
        b"%d" % nanoseconds(str(event.get("dur"))),
        b"" if correlation is None else str(correlation).encode(),
    )

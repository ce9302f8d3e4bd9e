"""The runner's framing: which bytes on the two streams answer which command.

A marker is a line of its own that begins with the session's nonce: ``begin ID T``,
``end ID RC T HOW`` and ``bye``, the same on stdout and stderr. The newline before it belongs to
it. Only the runner's shell knows the nonce; whatever else a host says is noise or an answer, never
a marker. A host that breaks the order or the caps is cut off, since it runs no runner of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

from commcheck.command import clean
from commcheck.errors import ConnectionLost
from commcheck.lazy import dataclass, regex

SLACK_BYTES: Final = 64 << 10
"""What may come beyond a cap, or between answers, before a host is cut off."""

SUBJECTS_CAP_BYTES: Final = 1 << 20
NOISE_CAP_BYTES: Final = 1 << 20
"""Login noise: motd, an echo in .bashrc, a version manager."""

_NOISE_KEPT_BYTES: Final = 4096
_MARKER_CAP_BYTES: Final = 200
_MARKER: Final = regex(
    rb"begin (\d{1,6}) (\d{1,12}(?:\.\d{1,9})?)"
    rb"|end (\d{1,6}) (-|\d{1,3}) (\d{1,12}(?:\.\d{1,9})?) ([a-z]{1,8})"
    rb"|bye"
)

_Marker = tuple[bytes, ...]
"""The groups of a marker: begin and its time, end with its code, time and how; all empty: bye."""


@dataclass(slots=True)
class Answer:
    """What came for one command so far; number 0 is what the runner found on the host.

    ``how``: "plain", "sudo", "direct" (``sudo -n`` with the command itself), "nosudo".
    """

    number: int
    started_s: float
    ended_s: float
    stdout: bytes = b""
    stderr: bytes = b""
    rc: int | None = None
    how: str = ""
    truncated: bool = False
    streams_open: int = 2


@dataclass(slots=True)
class _Stream:
    """One of the two streams: the bytes since the last marker, and where it stands."""

    name: str
    buffer: bytearray = field(default_factory=bytearray)
    searched: int = 0  # bytes of the buffer known to begin no marker
    inside: bool = False
    number: int = -1  # of the answer it is in, or was in last
    noise: bytearray = field(default_factory=bytearray)
    noise_bytes: int = 0
    done: bool = False  # bye was read


class FrameReader:
    """Turns chunks of the two streams into answers, in the order of their numbers.

    Raises ``ConnectionLost``, ``output-flood`` or ``protocol``, where the host breaks the
    framing; what came until then is still in ``left_over``.
    """

    def __init__(self, nonce: str) -> None:
        self._start = b"\n" + nonce.encode("ascii") + b" "
        self._caps: list[int] = [SUBJECTS_CAP_BYTES]
        self._streams = {name: _Stream(name) for name in ("out", "err")}
        self._open: dict[int, Answer] = {}
        self._complete: list[Answer] = []  # not yet handed over
        self._last_begun = -1

    def expect(self, caps: Sequence[int]) -> None:
        """The caps of the answers that follow number 0, in bytes."""
        self._caps.extend(caps)

    @property
    def begun(self) -> bool:
        """True once a marker was seen: a runner runs on the host."""
        return any(stream.number >= 0 for stream in self._streams.values())

    @property
    def finished(self) -> bool:
        """True once the runner has taken its leave and nothing is missing."""
        return self._streams["out"].done and not self._open

    @property
    def last_words(self) -> str:
        """The first line a host without a runner said, cleaned; empty where it said nothing."""
        for name in ("out", "err"):
            stream = self._streams[name]
            # The last bytes are still held back: they might have begun a marker.
            said = bytes(stream.noise if stream.inside else stream.noise + stream.buffer)
            text = clean(said[:_NOISE_KEPT_BYTES].decode("utf-8", "backslashreplace"))
            for line in text.splitlines():
                words = "".join(each for each in line if each.isprintable()).strip()
                if words:
                    return words[:200]
        return ""

    def feed(self, name: str, data: bytes) -> list[Answer]:
        """Take what arrived on stream "out" or "err"; the answers that are complete by now."""
        stream = self._streams[name]
        if stream.done:
            return []
        stream.buffer += data
        while (found := self._next_marker(stream)) is not None:
            answer = self._apply(stream, *found)
            if answer is not None:
                self._complete.append(answer)
            if stream.done:
                stream.buffer.clear()
                break
        answers, self._complete = self._complete, []
        return answers

    def left_over(self) -> list[Answer]:
        """What was not handed over, in the order of the numbers: answers that came with what broke
        the framing, then those begun and not ended, with what came of them.
        """
        for stream in self._streams.values():
            if stream.inside and stream.number in self._open:
                self._store(self._open[stream.number], stream.name, self._without_tail(stream))
        return [*self._complete, *(self._open[number] for number in sorted(self._open))]

    def _without_tail(self, stream: _Stream) -> bytes:
        """The answer in progress, without the half marker it may end in."""
        data = bytes(stream.buffer)
        # A marker's fields hold no newline, so that a half one begins at the last but its own.
        at = data.rfind(b"\n")
        tail = data[at:]
        half = (
            at >= 0 and len(tail) > 1 and (tail + self._start[len(tail) :]).startswith(self._start)
        )
        return data[:at] if half else data

    def _next_marker(self, stream: _Stream) -> tuple[bytes, _Marker] | None:
        """The bytes before the next marker, and the marker; None: it has not arrived."""
        buffer = stream.buffer
        at = buffer.find(self._start, stream.searched)
        if at < 0:
            if buffer:
                self._no_marker_yet(stream)
            return None
        stream.searched = at
        fields = at + len(self._start)
        end = buffer.find(b"\n", fields, fields + _MARKER_CAP_BYTES)
        if end < 0:
            if len(buffer) - fields >= _MARKER_CAP_BYTES:
                raise self._broken(stream, "a marker without an end")
            return None
        match = _MARKER.fullmatch(bytes(buffer[fields:end]))
        if match is None:
            raise self._broken(stream, "a marker it never sends")
        before = bytes(memoryview(buffer)[:at]) if at else b""
        del buffer[: end + 1]
        stream.searched = 0
        return before, match.groups(b"")

    def _no_marker_yet(self, stream: _Stream) -> None:
        tail = min(len(stream.buffer), len(self._start) - 1)
        if stream.inside:
            stream.searched = len(stream.buffer) - tail
            if len(stream.buffer) > self._caps[stream.number] + SLACK_BYTES:
                raise _flood(f"the output of command {stream.number} exceeds its cap")
            return
        cut = len(stream.buffer) - tail
        self._count_noise(stream, bytes(stream.buffer[:cut]))
        del stream.buffer[:cut]
        stream.searched = 0

    def _count_noise(self, stream: _Stream, noise: bytes) -> None:
        stream.noise_bytes += len(noise)
        room = _NOISE_KEPT_BYTES - len(stream.noise)
        stream.noise += noise[: max(0, room)]
        if stream.noise_bytes > NOISE_CAP_BYTES:
            raise _flood("bytes that belong to no command do not end")

    def _apply(self, stream: _Stream, before: bytes, marker: _Marker) -> Answer | None:
        if before and not stream.inside:
            self._count_noise(stream, before)
        begin, at, end, *_ = marker
        if begin:
            self._begin(stream, int(begin), float(at))
            return None
        if end:
            return self._end(stream, before, marker)
        if stream.inside or stream.number != len(self._caps) - 1:
            raise self._broken(stream, "its end before the last answer")
        stream.done = True
        return None

    def _begin(self, stream: _Stream, number: int, started_s: float) -> None:
        if stream.inside or number != stream.number + 1 or number >= len(self._caps):
            raise self._broken(stream, f"the begin of {number}")
        stream.inside = True
        stream.number = number
        if number > self._last_begun:
            self._last_begun = number
            self._open[number] = Answer(number, started_s, started_s)

    def _end(self, stream: _Stream, before: bytes, marker: _Marker) -> Answer | None:
        _, _, end, rc, ended_s, how = marker
        number = int(end)
        if not stream.inside or number != stream.number:
            raise self._broken(stream, f"the end of {number}")
        stream.inside = False
        answer = self._open[number]
        self._store(answer, stream.name, before)
        answer.rc = None if rc == b"-" else int(rc)
        answer.ended_s = float(ended_s)
        answer.how = how.decode("ascii")
        answer.streams_open -= 1
        return None if answer.streams_open else self._open.pop(number)

    def _store(self, answer: Answer, name: str, data: bytes) -> None:
        cap = self._caps[answer.number]
        if len(data) > cap:
            answer.truncated = True
            data = data[:cap]
        if name == "out":
            answer.stdout = data
        else:
            answer.stderr = data

    def _broken(self, stream: _Stream, what: str) -> ConnectionLost:
        where = f"after answer {stream.number}" if stream.number >= 0 else "at its start"
        return ConnectionLost(
            "protocol", f"the runner's std{stream.name} is broken: it sent {what} {where}"
        )


def _flood(what: str) -> ConnectionLost:
    return ConnectionLost(
        "output-flood",
        f"cut off: {what}",
        "look what the login shell or the command prints without end",
    )

"""One conversation with the runner on a host, over any duplex byte stream."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Final, Literal, NoReturn, Protocol

from commcheck.collect import runner
from commcheck.collect.base import SUBJECTS, Ask, Frame, Request, Sink, State
from commcheck.collect.frames import Answer, FrameReader
from commcheck.errors import ConnectionLost, HostDeadline, HostError, Unreachable
from commcheck.lazy import dataclass, regex

_TIMEOUT_CODES: Final = (None, 124, 137, 143)
"""timeout(1) answers 124, or 137 after -k; busybox and the runner's own limit 143 or 137."""

_SUDO_REFUSES: Final = regex(
    rb"^sudo: |^Sorry, user .* is not allowed to |^\S+ is not in the sudoers file"
    rb"|may not run sudo on ",
    re.MULTILINE,
)
"""sudo's own complaints under LC_ALL=C; the commands it runs do not begin a line with its name."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes that arrived on one stream; ``data == b""``: that stream ended."""

    stream: Literal["out", "err"]
    data: bytes


class Pipe(Protocol):
    """A duplex byte stream to one shell on a host.

    ``send`` and ``receive`` may raise ``OSError``, ``EOFError`` or a ``HostError``; ``converse``
    turns the first two into ``ConnectionLost``.
    """

    def send(self, data: bytes) -> None:
        """Send all of ``data`` to the shell's stdin."""

    def receive(self, timeout_s: float) -> Chunk | None:
        """The next chunk (64 KiB at most is wise); None: nothing arrived in ``timeout_s``."""

    def close(self) -> None:
        """Close stdin and both outputs. May be called more than once, and from other threads."""


@dataclass(frozen=True, slots=True)
class Session:
    """Settings of one conversation. ``deadline_s``: seconds for the whole of it."""

    mark: str  # "<run>.<session>": [A-Za-z0-9_.-]{1,64}, unique to this connection
    become: bool = False  # run the whole runner as root, where sudo -n lets us
    path: tuple[str, ...] = ()  # appended to PATH
    sysfs_root: str = ""  # put before /sys/ and /proc/, for the embedded fleet only
    deadline_s: float = 300.0


def command_line(session: Session) -> str:
    """What to exec on the host; any login shell can take it.

    Raises ``ValueError`` where the mark could not stand in a command.
    """
    length = len(_first_part(session, "0" * runner.NONCE_CHARS))
    return runner.bootstrap(mark=session.mark, length=length, become=session.become)


def converse(
    pipe: Pipe,
    session: Session,
    ask: Ask,
    sink: Sink,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Hold the whole conversation; closes ``pipe`` at the end, whatever happens.

    Every complete frame goes to ``sink`` as it arrives; frames begun and not ended go there last,
    as ``State.LOST``. Raises ``Unreachable("no-runner")``, ``ConnectionLost`` with code
    "connection-lost", "output-flood" or "protocol", ``HostDeadline("host-deadline")``, and
    whatever ``HostError`` the pipe raises.
    """
    talk = _Talk(pipe, session, sink, clock)
    try:
        talk.run(ask)
    except HostError:
        talk.hand_over_lost()
        raise
    finally:
        pipe.close()


def _first_part(session: Session, nonce: str) -> bytes:
    return runner.first_part(
        mark=session.mark,
        nonce=nonce,
        path=session.path,
        sysfs_root=session.sysfs_root,
        deadline_s=session.deadline_s,
    )


_LAST_WORDS_S: Final = 1.0
"""stderr may still bring the reason after stdout has ended, but need not be closed at all."""


class _Talk:
    """The state of one conversation."""

    def __init__(
        self, pipe: Pipe, session: Session, sink: Sink, clock: Callable[[], float]
    ) -> None:
        self._pipe = pipe
        self._session = session
        self._sink = sink
        self._clock = clock
        self._deadline = clock() + session.deadline_s
        self._nonce = secrets.token_hex(runner.NONCE_CHARS // 2)
        self._reader = FrameReader(self._nonce)
        self._requests: Sequence[Request] = ()
        self._ended: set[str] = set()

    def run(self, ask: Ask) -> None:
        self._send(_first_part(self._session, self._nonce))
        found: list[Answer] = []
        while not found:
            found = self._receive()
        subjects = self._frame(found[0])
        self._sink(subjects)
        self._requests = tuple(ask(subjects))
        self._reader.expect([each.command.cap_bytes for each in self._requests])
        root = self._session.sysfs_root
        self._send(runner.second_part(self._requests, nonce=self._nonce, sysfs_root=root))
        while not self._reader.finished:
            if answers := self._receive():
                self._sink(*map(self._frame, answers))

    def hand_over_lost(self) -> None:
        """What came last, and for the commands that were running when the conversation broke."""
        if answers := self._reader.left_over():
            self._sink(*map(self._frame, answers))

    def _send(self, data: bytes) -> None:
        try:
            self._pipe.send(data)
        except (OSError, EOFError) as error:
            # The peer closed its stdin; what it said before tells why.
            while "out" not in self._ended:
                self._receive()
            self._lost(error)

    def _receive(self) -> list[Answer]:
        """Answers completed by the next chunk; none where nothing arrived in time."""
        remaining = self._deadline - self._clock()
        if remaining <= 0:
            self._too_late()
        if "out" in self._ended:
            remaining = min(remaining, _LAST_WORDS_S)
        try:
            chunk = self._pipe.receive(remaining)
        except (OSError, EOFError) as error:
            self._lost(error)
        if chunk is None:
            if "out" in self._ended:
                self._lost(None)
            return []
        if chunk.data:
            return self._reader.feed(chunk.stream, chunk.data)
        again = chunk.stream in self._ended
        self._ended.add(chunk.stream)
        if len(self._ended) == 2 or (again and "out" in self._ended):
            self._lost(None)
        return []

    def _lost(self, error: Exception | None) -> NoReturn:
        if not self._reader.begun:
            words = self._reader.last_words
            said = f"it said {words!r}" if words else "it said nothing"
            raise Unreachable(
                "no-runner",
                f"logged in, but no POSIX shell took commands: {said}",
                "try: ssh HOST env sh -c true; a forced command, nologin, an expired account or "
                "a missing env, sh or head(1) looks like this",
            ) from error
        why = f" ({error})" if error is not None and str(error) else ""
        raise ConnectionLost(
            "connection-lost",
            f"the connection broke while commands were running{why}",
            "see whether the host rebooted or its sshd was restarted",
        ) from error

    def _too_late(self) -> NoReturn:
        begun = "its commands were not done" if self._reader.begun else "no runner answered"
        raise HostDeadline(
            "host-deadline",
            f"{begun} within the host's {self._session.deadline_s:g} s",
            "run its slowest command by hand; a driver or firmware that hangs looks like this",
        )

    def _frame(self, answer: Answer) -> Frame:
        request = self._requests[answer.number - 1] if answer.number else None
        return Frame(
            key=request.key if request else SUBJECTS,
            stdout=answer.stdout,
            stderr=answer.stderr,
            rc=answer.rc,
            started_s=answer.started_s,
            ended_s=max(answer.started_s, answer.ended_s),
            truncated=answer.truncated,
            state=State.LOST if answer.streams_open else _state(answer, request),
        )


def _state(answer: Answer, request: Request | None) -> State:
    if request is None:
        return State.DONE
    if answer.how == "nosudo" or (
        answer.how == "direct" and answer.rc == 1 and _SUDO_REFUSES.search(answer.stderr)
    ):
        return State.SUDO_REFUSED
    # A command may exit 124 of its own will: only one that used up its time was timed out.
    # /proc/uptime counts hundredths of a second.
    used_up = answer.ended_s - answer.started_s >= request.command.timeout_s - 0.02
    if answer.rc in _TIMEOUT_CODES and used_up:
        return State.TIMED_OUT
    # The helper that knows the exit code was killed on the host (out of memory, say).
    return State.DONE if answer.rc is not None else State.LOST

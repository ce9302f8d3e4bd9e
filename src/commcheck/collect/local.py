"""This machine as a host: the same runner, over the pipes of a child process."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, Literal

from commcheck.collect.base import Ask, Sink
from commcheck.collect.session import Chunk, Session, command_line, converse
from commcheck.errors import ConnectionLost, Interrupted, Unreachable
from commcheck.model import Host

_CHUNK_BYTES: Final = 64 << 10
_SEND_LIMIT_S: Final = 30.0
_LEAVE_LIMIT_S: Final = 5.0
"""The runner has killed what it started within about a second of its stdin's end."""


class LocalPipe:
    """A ``Pipe`` to a child of this process. ``argv`` is what a login shell would be."""

    def __init__(self, argv: tuple[str, ...], leave_s: float = _LEAVE_LIMIT_S) -> None:
        """Start the child; at the end it has ``leave_s`` to go. Raises ``OSError``."""
        self._leave_s = leave_s
        self._child = subprocess.Popen(  # noqa: S603 - words, no shell string
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            # Ctrl-C on the terminal must reach commcheck alone, which then ends the runner.
            start_new_session=True,
        )
        assert self._child.stdin  # noqa: S101 - for mypy: all three are pipes
        assert self._child.stdout  # noqa: S101
        assert self._child.stderr  # noqa: S101
        self._stdin = self._child.stdin
        self._outputs = (self._child.stdout, self._child.stderr)
        self._open: dict[int, Literal["out", "err"]] = {
            self._child.stdout.fileno(): "out",
            self._child.stderr.fileno(): "err",
        }
        self._poll = select.poll()  # select() knows no descriptor beyond 1023
        for descriptor in self._open:
            self._poll.register(descriptor, select.POLLIN)
        self._lock = threading.Lock()
        os.set_blocking(self._stdin.fileno(), False)

    def send(self, data: bytes) -> None:
        """Send all of ``data``. Raises ``OSError`` where the child does not take it."""
        rest = memoryview(data)
        end = time.monotonic() + _SEND_LIMIT_S
        while rest:
            with self._lock:
                if self._stdin.closed:
                    raise BrokenPipeError("closed")
                sent = self._stdin.write(rest) or 0
            rest = rest[sent:]
            if rest and time.monotonic() > end:
                raise TimeoutError(f"the shell took no input for {_SEND_LIMIT_S:g} s")
            if rest:
                time.sleep(0.001)

    def receive(self, timeout_s: float) -> Chunk | None:
        """The next chunk, or None after ``timeout_s``."""
        ready = self._poll.poll(max(0.0, timeout_s) * 1000)
        if not ready:
            return None
        descriptor, _ = ready[0]
        data = os.read(descriptor, _CHUNK_BYTES)
        chunk = Chunk(self._open[descriptor], data)
        if not data:
            self._poll.unregister(descriptor)
            del self._open[descriptor]
        return chunk

    def hang_up(self) -> None:
        """End the lifeline, from any thread: the runner kills what it started and leaves."""
        with self._lock, contextlib.suppress(OSError):
            self._stdin.close()

    def close(self) -> None:
        """Hang up, and see the child leave; one that does not is killed, with what it started."""
        self.hang_up()
        for stream in self._outputs:
            stream.close()
        for _ in range(2):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(self._leave_s)
                return
            with contextlib.suppress(ProcessLookupError, PermissionError):  # of root's, by sudo
                os.killpg(self._child.pid, signal.SIGKILL)


class Pipes:
    """The children that talk now. Once stopped all are hung up, and none is started."""

    def __init__(self, leave_s: float = _LEAVE_LIMIT_S) -> None:
        """``leave_s``: how long each may take to go."""
        self._leave_s = leave_s
        self._stopped = False
        self._open: set[LocalPipe] = set()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def to(self, argv: tuple[str, ...]) -> Iterator[LocalPipe]:
        """A child for the time of the block. Raises ``OSError`` where it cannot be started.

        What breaks in the block after ``stop`` is ``Interrupted``.
        """
        with self._lock:
            self.go_on()
            pipe = LocalPipe(argv, self._leave_s)
            self._open.add(pipe)
        try:
            yield pipe
        except (ConnectionLost, Unreachable):
            self.go_on()
            raise
        finally:
            with self._lock:
                self._open.discard(pipe)
            pipe.close()

    def go_on(self) -> None:
        """Raise ``Interrupted`` where the operator stopped the run."""
        if self._stopped:
            raise Interrupted("interrupted", "the operator stopped the run")

    def stop(self) -> None:
        """End every session that is open, and open no other."""
        with self._lock:
            self._stopped = True
            pipes = list(self._open)
        for pipe in pipes:
            pipe.hang_up()


SessionOf = Callable[[Host], Session]


def on_errand(session_of: SessionOf, session: str, deadline_s: float) -> SessionOf:
    """Sessions for a job: see ``Traveller``."""

    def other(host: Host) -> Session:
        usual = session_of(host)
        run_id, _, own = usual.mark.rpartition(".")
        return replace(usual, mark=f"{run_id}.{session or own}", deadline_s=deadline_s)

    return other


class LocalVisitor:
    """Visits hosts that are this machine (``ansible_connection: local``).

    ``session_of`` gives each host its own session, since several names may be this machine.
    """

    def __init__(self, session_of: SessionOf, shell: str = "/bin/sh") -> None:
        """``shell`` stands for the login shell."""
        self._session_of = session_of
        self._shell = shell
        self._pipes = Pipes()

    def visit(self, host: Host, ask: Ask, sink: Sink) -> None:
        """Run the bundle here. Raises ``HostError``; ``Interrupted`` after ``stop``."""
        session = self._session_of(host)
        try:
            with self._pipes.to((self._shell, "-c", command_line(session))) as pipe:
                converse(pipe, session, ask, sink)
        except OSError as error:
            raise Unreachable("no-shell", f"cannot start {self._shell}: {error}") from error

    def errand(self, session: str, deadline_s: float) -> LocalVisitor:
        """See ``Traveller``."""

        return LocalVisitor(on_errand(self._session_of, session, deadline_s), self._shell)

    def stop(self) -> None:
        """End every session that is open, and open no other."""
        self._pipes.stop()

"""What every way of reaching a host has in common: requests, frames and the visitor protocol."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import field
from enum import StrEnum
from functools import lru_cache
from typing import Protocol

from commcheck.command import Command
from commcheck.lazy import dataclass
from commcheck.model import Host

SUBJECTS = "subjects"
"""Key of the first frame of a session: what the runner found on the host."""


class State(StrEnum):
    """How a command ended."""

    DONE = "done"
    TIMED_OUT = "timed-out"
    LOST = "lost"  # begun, and the session broke or the host's time ran out
    SUDO_REFUSED = "sudo-refused"


@dataclass(frozen=True, slots=True)
class Request:
    """A command with its places filled in, to be run once in one phase of the bundle."""

    command: Command
    at: str = "once"  # "start", "once" or "end"
    # Names the command in frames, events and reports: the same command has one key.
    key: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Work out the key, which is asked for again and again."""
        object.__setattr__(self, "key", _key(self.command, self.at))


@lru_cache(maxsize=8192)  # the hosts of a fleet are asked alike
def _key(command: Command, at: str) -> str:
    root = "sudo " if command.root else ""
    return f"{at}: {root}{shlex.join(command.said_as or command.argv)}"


@dataclass(frozen=True, slots=True)
class Frame:
    """What one command answered: bytes as they came, exit code, times in s since the boot."""

    key: str
    stdout: bytes
    stderr: bytes
    rc: int | None  # None where it is not known
    started_s: float
    ended_s: float
    truncated: bool = False
    state: State = State.DONE


Ask = Callable[[Frame], Sequence[Request]]
"""Pure: from the subjects frame to the requests of this host, in phase order."""


class Sink(Protocol):
    """Takes every frame as it arrives, from the visiting thread."""

    def __call__(self, *frames: Frame) -> None:
        """Take those that arrived together."""


class Frames(list[Frame]):
    """A sink that keeps what it takes, in that order."""

    def __call__(self, *frames: Frame) -> None:
        """See ``Sink``."""
        self.extend(frames)


class Visitor(Protocol):
    """One way of reaching hosts."""

    def visit(self, host: Host, ask: Ask, sink: Sink) -> None:
        """Open one session, run the bundle, hand over frames as they arrive, leave nothing behind.

        Raises ``HostError`` where the host could not be judged whole; frames handed over before
        that stay valid. Must return soon after ``stop`` was called from another thread.
        """

    def stop(self) -> None:
        """The operator interrupts: end every open session, kill what was started on the hosts."""

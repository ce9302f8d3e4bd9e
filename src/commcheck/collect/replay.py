"""A recorded run as a host: the frames of then answer the questions of today."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from commcheck.collect.base import SUBJECTS, Ask, Frame, Sink
from commcheck.errors import Interrupted, Unreachable
from commcheck.model import Host


class ReplayVisitor:
    """Answers from recorded frames; ``frames_of`` gives those of a host by its inventory name."""

    def __init__(self, frames_of: Callable[[str], Iterable[Frame]]) -> None:
        """Nothing is read before a host is visited."""
        self._frames_of = frames_of
        self._stopped = False

    def visit(self, host: Host, ask: Ask, sink: Sink) -> None:
        """Hand over the recorded frames that are asked for; what was not recorded stays out.

        Raises ``Unreachable("not-recorded")`` where not even the subjects of the host are known.
        Where a command was recorded twice (a resumed run), the later answer stands.
        """
        if self._stopped:
            raise Interrupted("interrupted", "the operator stopped the run")
        recorded = {frame.key: frame for frame in self._frames_of(host.name)}
        if SUBJECTS not in recorded:
            raise Unreachable(
                "not-recorded",
                f"the run holds nothing of {host.name}",
                "run it against the host itself",
            )
        subjects = recorded[SUBJECTS]
        sink(subjects)
        for request in ask(subjects):
            frame = recorded.get(request.key)
            if frame is not None:
                sink(frame)

    def stop(self) -> None:
        """Visit no further host."""
        self._stopped = True

"""A recorded run as a host: the frames of then answer the questions of today."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from commcheck.check import EARLIER
from commcheck.collect.base import SUBJECTS, Ask, Frame, Sink
from commcheck.errors import HostError, Interrupted, RunFolderError, Unreachable
from commcheck.model import Host


def _no_error(_host: str) -> HostError | None:
    return None


class ReplayVisitor:
    """Answers from recorded frames; ``frames_of`` gives those of a host by its inventory name.

    ``error_of`` gives the error that the host's session ended with then.
    """

    def __init__(
        self,
        frames_of: Callable[[str], Iterable[Frame]],
        error_of: Callable[[str], HostError | None] = _no_error,
    ) -> None:
        """Nothing is read before a host is visited."""
        self._frames_of = frames_of
        self._error_of = error_of
        self._stopped = False

    def visit(self, host: Host, ask: Ask, sink: Sink) -> None:
        """Hand over the recorded frames that are asked for; what was not recorded stays out.

        Raises what the session ended with, or ``Unreachable("not-recorded")`` where not even the
        subjects of the host are known. Where a command was recorded twice (a resumed run), the
        later answer stands. Readings of runs before it are handed over as they were.
        """
        if self._stopped:
            raise Interrupted("interrupted", "the operator stopped the run")
        error = self._error_of(host.name)
        try:
            recorded = {frame.key: frame for frame in self._frames_of(host.name)}
        except RunFolderError as problem:
            raise Unreachable(
                "not-recorded",
                f"what the run holds of {host.name} is damaged: {problem}",
                "run it against the host itself",
            ) from problem
        if SUBJECTS not in recorded:
            raise error or Unreachable(
                "not-recorded",
                f"the run holds nothing of {host.name}",
                "run it against the host itself",
            )
        subjects = recorded[SUBJECTS]
        sink(subjects)
        wanted = dict.fromkeys(request.key for request in ask(subjects))
        for key in wanted:
            if key in recorded:
                sink(recorded[key])
        for key, frame in recorded.items():
            if key.startswith(f"{EARLIER}: ") and key not in wanted:
                sink(frame)
        if error is not None:
            raise error

    def stop(self) -> None:
        """Visit no further host."""
        self._stopped = True

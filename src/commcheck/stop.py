"""The ways in which a run is stopped from outside: signals and the run's own deadline."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from types import FrameType
from typing import Final, NoReturn

from commcheck.errors import NotKept
from commcheck.lazy import dataclass

EXIT_CODES: Final = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 143}
"""128 + signal number; a terminal that dies (SIGHUP) is treated like SIGTERM."""


@contextmanager
def leaving_in_order() -> Iterator[None]:
    """Within: a signal that ends the program lets it clear up, as Ctrl-C does."""

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        for each in _TOLD:
            signal.signal(each, signal.SIG_IGN)
        sys.exit(EXIT_CODES[signal.Signals(number)])

    before = {number: signal.signal(number, leave) for number in _TOLD}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_SAID_S: Final = 1.0
"""For the words to be said: a disk that hangs holds up no end."""

_TOLD: Final = (signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True, repr=False)
class Stop:
    """``event`` is set once the run must end; ``exit_code`` is 0 where no signal asked for it."""

    say: Callable[[str], None]
    event: threading.Event = field(default_factory=threading.Event)
    exit_code: int = 0
    signalled: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)

    @contextmanager
    def on_signals(self, deadline_s: float = 0.0) -> Iterator[None]:
        """Within: the first signal stops the run in order, the second quits at once.

        ``deadline_s`` > 0 stops the run in order after that many seconds.
        """
        # A handler runs between two steps of the main thread and may neither wait for its locks nor
        # start a thread, which does: the words are said by one that is there before.
        speaker = threading.Thread(target=self._speak, name="signals", daemon=True)
        with contextlib.suppress(RuntimeError):  # no thread is to be had: the run ends unsaid
            speaker.start()
        before = {number: signal.signal(number, self._on_signal) for number in EXIT_CODES}
        timer = threading.Timer(deadline_s, self._on_deadline, [deadline_s])
        timer.daemon = True
        if deadline_s > 0:
            timer.start()
        try:
            yield
        finally:
            timer.cancel()
            for number, handler in before.items():
                signal.signal(number, handler)
            self.signalled.put("")
            if speaker.ident is not None:
                speaker.join(_SAID_S)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        code = EXIT_CODES[signal.Signals(number)]
        if self.exit_code:
            os._exit(code)  # the operator asked twice; files are whole, they are renamed into place
        self.exit_code = code
        self.event.set()
        self.signalled.put(signal.Signals(number).name)

    def _speak(self) -> None:
        while name := self.signalled.get():
            with contextlib.suppress(NotKept):  # the run ends by that, too
                self.say(
                    f"{name}: ending every session and writing the reports; once more quits at once"
                )

    def _on_deadline(self, deadline_s: float) -> None:
        self.event.set()
        with contextlib.suppress(NotKept):
            self.say(
                f"the run's own deadline of {deadline_s:g} s is over: what is left is not judged"
            )

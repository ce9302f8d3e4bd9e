"""Processes that share an analysis: Ctrl-C ends them at once, and none of them has a word to say.

A terminal's Ctrl-C reaches every process of the command. One that still starts would print a
traceback, wherever it stands in its imports.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_CTRL_C: Final = {signal.SIGINT}


@contextmanager
def unhearing() -> Iterator[None]:
    """What is started within does not hear Ctrl-C until it calls ``hear``."""
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # starts with the first process, and lifts the mask then
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _CTRL_C)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def hear() -> None:
    """In such a process, once it has started: Ctrl-C ends it, also one that came before.

    Where a shell told the command to ignore it, behind an ``&``, so does the process.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _CTRL_C)

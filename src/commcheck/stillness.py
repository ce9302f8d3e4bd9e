"""This process stood still: it was stopped (Ctrl-Z), or its machine slept or was starved."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from commcheck.errors import NotKept

STILL_S: Final = 5.0
"""Half of the shortest limit that hosts have by default (10 s to connect): less costs none."""

_LOOK_S: Final = 0.5
# Linux does not count a machine's sleep as monotonic time; other systems do.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@contextmanager
def watched(say: Callable[[str], None]) -> Iterator[None]:
    """Within: ``say``, in a thread of its own, is told each time that this process stood still.

    Time limits went on meanwhile, and no host is to be blamed for what it could not answer.
    """
    over = threading.Event()

    def watch() -> None:
        last = time.clock_gettime(_CLOCK)
        while not over.wait(_LOOK_S):
            now = time.clock_gettime(_CLOCK)
            still_s, last = now - last - _LOOK_S, now
            if still_s > STILL_S:
                with contextlib.suppress(NotKept):  # the run ends by that
                    say(
                        f"commcheck stood still for {still_s:.0f} s: it was stopped, or this "
                        "machine slept or was starved; hosts that ran out of time or lost their "
                        "connection meanwhile may be right: --again asks them once more"
                    )

    thread = threading.Thread(target=watch, name="commcheck-stillness", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()

"""How many hosts this process has descriptors for."""

from __future__ import annotations

import contextlib
import resource
from typing import Final

A_HOST: Final = 8
"""Descriptors of one host: its connection or three of a child, its frames, and a few on the way."""

OURS: Final = 48
"""Those of the process itself: streams, the events, files that reports are written to."""


def room_for(forks: int) -> int:
    """How many of ``forks`` hosts at a time there are descriptors for; at least 1.

    The soft limit is raised as far as the hard one lets it: 256 is what some systems begin with.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OURS + A_HOST * forks
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return forks
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with contextlib.suppress(OSError, ValueError):  # some containers forbid it
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    return max(1, min(forks, (soft - OURS) // A_HOST))

"""stdout, where results go, and stderr, where the rest goes."""

from __future__ import annotations

import contextlib
import sys


def say(result: str) -> None:
    """Print a result. A reader that has left costs neither reports nor the exit code."""
    with contextlib.suppress(BrokenPipeError):
        print(result.rstrip("\n"), flush=True)


def warn(text: str) -> None:
    """Print a warning, in one line."""
    with contextlib.suppress(BrokenPipeError):
        print(f"commcheck: warning: {text}", file=sys.stderr, flush=True)

"""stdout, where results go."""

from __future__ import annotations

import contextlib


def say(result: str) -> None:
    """Print a result. A reader that has left costs neither reports nor the exit code."""
    with contextlib.suppress(BrokenPipeError):
        print(result.rstrip("\n"), flush=True)

"""How a text for a terminal becomes lines: what matters is wrapped there, and never cut."""

from __future__ import annotations

import textwrap
from typing import Final

NO_EDGE: Final = 1 << 16
"""Columns of what is no terminal: a build's log wraps by itself, or is searched with grep."""

_ROOM: Final = 40
"""Columns below which a text beside others would be a ribbon."""

_INDENT: Final = "    "


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of at most ``width`` columns, unless one word is longer; the first has no indent."""
    return textwrap.wrap(
        text,
        max(_ROOM, width),
        subsequent_indent=indent,
        break_long_words=False,  # a path or a command is there to be copied
        break_on_hyphens=False,
    )


def beside(left: str, text: str, width: int) -> list[str]:
    """A text in the column right of ``left``; below it, where that column were too narrow."""
    if len(left) + len(text) <= width:
        return [left + text]
    if width - len(left) >= _ROOM:
        first, *others = wrapped(text, width - len(left)) or [""]
        return [left + first, *(" " * len(left) + line for line in others)]
    return [" ".join(left.split()), *wrapped(_INDENT + text, width, _INDENT)]

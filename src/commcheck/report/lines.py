"""How a text for a terminal becomes lines: what matters is wrapped there, and never cut."""

from __future__ import annotations

import textwrap
from typing import Final
from unicodedata import east_asian_width

NO_EDGE: Final = 1 << 16
"""Columns of what is no terminal: a build's log wraps by itself, or is searched with grep."""

_ROOM: Final = 40
"""Columns below which a text beside others would be a ribbon."""

_INDENT: Final = "    "


_JOINER: Final = "\N{WORD JOINER}"


def _spread(text: str) -> str:
    """The text with a joiner after each Han character, so that it is as long as it is wide."""
    if text.isascii():
        return text
    return "".join(c + _JOINER if east_asian_width(c) in "WF" else c for c in text)


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of at most ``width`` columns, unless one word is longer; the first has no indent."""
    lines = textwrap.wrap(
        _spread(text),
        max(_ROOM, width),
        subsequent_indent=indent,
        break_long_words=False,  # a path or a command is there to be copied
        break_on_hyphens=False,
    )
    return [line.replace(_JOINER, "") for line in lines]


def beside(left: str, text: str, width: int) -> list[str]:
    """A text in the column right of ``left``; below it, where that column were too narrow."""
    margin = len(_spread(left))
    if margin + len(_spread(text)) <= width:
        return [left + text]
    if width - margin >= _ROOM:
        first, *others = wrapped(text, width - margin) or [""]
        return [left + first, *(" " * margin + line for line in others)]
    return [" ".join(left.split()), *wrapped(_INDENT + text, width, _INDENT)]

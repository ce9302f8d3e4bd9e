"""What readers of line-by-line texts share: whole lines, patterns, ``path:value`` lines of grep."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from commcheck.command import Output
from commcheck.errors import ParseError


def whole_lines(text: str, tool: str) -> list[str]:
    """The lines without their ends. A last line without one was cut, and is refused."""
    if not text.endswith("\n"):
        raise ParseError(tool, text, "whole lines to the end")
    return text.split("\n")[:-1]


def only(pattern: str | re.Pattern[str], value: str, text: str, tool: str) -> re.Match[str]:
    """The match of the whole value; raises ``ParseError`` where it has another form."""
    form = re.compile(pattern) if isinstance(pattern, str) else pattern
    match = form.fullmatch(value)
    if match is None:
        raise ParseError(tool, text, f"{form.pattern}, not {value[:60]!r}")
    return match


def once(values: dict[str, str], key: str, value: str, text: str, tool: str) -> None:
    """Keep a value; the same key twice is not the answer for one thing, and is refused."""
    if key in values:
        raise ParseError(tool, text, f"{key!r} once")
    values[key] = value


def need(values: dict[str, str], keys: set[str], text: str, tool: str) -> None:
    """Raise ``ParseError`` where a key is missing."""
    if missing := keys - values.keys():
        raise ParseError(tool, text, f"a line {min(missing)!r}")


def files(text: str, names: re.Pattern[str], tool: str) -> Iterator[tuple[re.Match[str], str]]:
    """``path:value`` lines as grep prints them: the match of the path's tail, and the value.

    A path whose tail does not match, and a line that is none, is refused: grep prints nothing
    else on its stdout, so it was damaged.
    """
    if not text:
        return
    for line in whole_lines(text, tool):
        path, colon, value = line.partition(":")
        # A PCI address has colons too: the path ends at the first one behind the name.
        while (match := names.search(path)) is None and colon:
            more, colon, value = value.partition(":")
            path = f"{path}:{more}"
        if match is None or not colon or not path.startswith("/"):
            raise ParseError(tool, text, f"path and value of a file, not {line.strip()[:60]!r}")
        yield match, value


def parse_json(output: Output, tool: str) -> Any:
    """The JSON document; a line of warning before it is left out. Raises ``ParseError``."""
    text = output.text
    start = re.search(r"^\s*[\[{]", text, re.MULTILINE)
    try:
        return json.loads(text[start.start() :] if start else text)
    except (ValueError, RecursionError):
        raise ParseError(tool, text, "a JSON document") from None

"""JSON with the line of every key, so that a finding names the place to mend."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from commcheck.errors import UsageError
from commcheck.lazy import dataclass, regex

_STRING: Final = r'"(?:[^"\\\n]|\\.)*"?'
_COMMENT: Final = regex(
    rf"{_STRING}|(?P<gone>//[^\n]*|#[^\n]*|/\*.*?(?:\*/|(?P<cut>\Z)))", re.DOTALL
)
_NOT_BLANK: Final = regex(r"[^\s]")
_LAST_COMMA: Final = regex(rf"{_STRING}|(?P<gone>,)(?=\s*[\]}}])")
_TOKEN: Final = regex(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|\n|[^\s{}\[\],:"]+')


@dataclass(frozen=True, slots=True)
class Placed:
    """A JSON object: plain values, and the line of each key by its dotted path."""

    file: str
    value: Mapping[str, object]
    lines: Mapping[str, int]

    def at(self, path: str) -> str:
        """``file:line`` of a key, the file alone where it is not there."""
        line = self.lines.get(path)
        return self.file if line is None else f"{self.file}:{line}"


def read_json(text: str, file: str, what: str) -> Placed:
    """A JSON object, with comments and a comma at the end as far as people write them: DeepSpeed
    reads Hjson (runtime/config.py).

    Raises ``UsageError``, one line, for anything else, and for a key twice.
    """
    text = text.removeprefix("\ufeff")
    try:
        try:
            value = json.loads(text, object_pairs_hook=_pairs)
        except json.JSONDecodeError:
            text = _blanked(_blanked(text, _COMMENT), _LAST_COMMA)
            value = json.loads(text, object_pairs_hook=_pairs)
    except json.JSONDecodeError as error:
        place = f"{file}:{error.lineno}:{error.colno}"
        raise UsageError(f"{place}: error: no JSON: {error.msg} [{what}]") from None
    except _Twice as error:
        raise UsageError(
            f"{file}:{_line_of(text, error.key)}: error: {error.key!r} stands twice [{what}]"
        ) from None
    except (RecursionError, ValueError) as error:  # ValueError: a number of thousands of digits
        told = "nested too deeply" if isinstance(error, RecursionError) else "a number without end"
        raise UsageError(f"{file}: error: {told} [{what}]") from None
    if not isinstance(value, dict):
        raise UsageError(f"{file}:1: error: no JSON object, wanted {{...}} [{what}]")
    return Placed(file, value, dict(_lines(text)))


def _blanked(text: str, pattern: re.Pattern[str]) -> str:
    """Spaces for what is not JSON, so that all else stays at its place."""

    def blank(match: re.Match[str]) -> str:
        gone = match["gone"]
        is_cut = match.groupdict().get("cut") is not None
        return match[0] if gone is None or is_cut else _NOT_BLANK.sub(" ", gone)

    return pattern.sub(blank, text)


class _Twice(Exception):
    def __init__(self, key: str) -> None:
        self.key = key


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _Twice(key)
        found[key] = value
    return found


def _line_of(text: str, key: str) -> int:
    """The line of a key's last appearance."""
    return text.count("\n", 0, max(0, text.rfind(json.dumps(key)))) + 1


def _lines(text: str) -> Iterator[tuple[str, int]]:
    """(dotted path, line) of every key of a text that is known to be JSON."""
    line, path, word, word_line = 1, [""], "", 1
    in_list: list[bool] = []
    for match in _TOKEN.finditer(text):
        piece = match[0]
        if piece == "\n":
            line += 1
        elif piece == ":":
            path[-1] = word
            yield ".".join(each for each in path if each), word_line
        elif piece in "{[":
            in_list.append(piece == "[")
            path.append("" if piece == "{" else "0")
        elif piece in "}]":
            in_list.pop()
            path.pop()
        elif piece == "," and in_list and in_list[-1]:
            path[-1] = str(int(path[-1]) + 1)
        elif piece.startswith('"'):
            word, word_line = json.loads(piece, strict=False), line

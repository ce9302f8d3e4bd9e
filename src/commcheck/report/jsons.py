"""JSON as run folders hold it: compact, UTF-8, and no text that it cannot tell."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder()


def encoded(value: object) -> bytes:
    """Plain data as JSON. A lone surrogate becomes its JSON escape, so every text survives."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")


def encoded_lines(values: Sequence[object]) -> bytes:
    """The same for lines of a stream, each with its newline."""
    try:
        return _ENCODER.encode_lines(values)  # to append newlines would copy all of a long answer
    except UnicodeEncodeError:
        return b"".join(encoded(value) + b"\n" for value in values)


def decoded(text: str | bytes) -> Any:
    """What ``encoded`` wrote. Raises ``ValueError`` or ``RecursionError`` for what is no JSON."""
    try:
        return _DECODER.decode(text)
    except ValueError:
        return json.loads(text)  # it takes lone surrogates, and tells a fault by line and column

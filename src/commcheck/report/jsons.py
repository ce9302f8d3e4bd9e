"""JSON as run folders hold it: compact, UTF-8, and no text that it cannot tell."""

from __future__ import annotations

import json
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


def encoded_line(value: object) -> bytes:
    """The same, with the newline that ends a line of a stream."""
    try:
        return _ENCODER.encode_lines((value,))  # to append it would copy all of a long answer
    except UnicodeEncodeError:
        return encoded(value) + b"\n"


def decoded(text: str | bytes) -> Any:
    """What ``encoded`` wrote. Raises ``ValueError`` or ``RecursionError`` for what is no JSON."""
    try:
        return _DECODER.decode(text)
    except ValueError:
        return json.loads(text)  # it takes lone surrogates, and tells a fault by line and column
